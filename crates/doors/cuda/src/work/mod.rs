//! Work for a stream: what is queued, or becomes a node of a graph while the stream is captured.

pub mod capture;
pub mod event;
pub mod graph;
pub mod hints;
pub mod launch;
pub mod memory_operation;
pub mod old_launch;
pub mod queries;
pub mod stream;
pub mod worker;

use crate::{
    checks::order,
    code::{Code, Outcome},
    context::Context,
    memory::{accept_free, copy::Copy, free_now, is_for_host, within},
    raw::{Callback, UserData},
    work::{
        event::Event,
        graph::{Branch, Conditional, Exec, GraphMemory, Inner},
        launch::Launch,
        memory_operation::Operation,
        worker::calling_back,
    },
};
use margay::render::demangled;
use std::sync::{Arc, OnceLock};

/// A piece of work, and the type of a graph node.
#[derive(Clone)]
pub enum Work {
    /// Launches a kernel.
    Kernel(Launch),
    /// Copies memory.
    Copy(Copy),
    /// Fills memory with a pattern.
    Fill(Fill),
    /// Calls a function of the program.
    Host(Callback, UserData),
    /// Records an event.
    Record(Arc<Event>),
    /// Waits for an event.
    Wait(Arc<Event>),
    /// A child graph, in a graph that is not instantiated.
    Inner(Arc<Inner>),
    /// An executable child graph.
    Graph(Arc<Exec>),
    /// Allocates memory of the graph.
    Alloc(Arc<GraphMemory>),
    /// Frees memory at an address.
    Free(u64),
    /// Waits for words in memory and writes them.
    Memory(Arc<[Operation]>),
    /// A conditional node, in a graph that is not instantiated.
    Conditional(Arc<Conditional>),
    /// An executable conditional node.
    Branch(Arc<Branch>),
    /// Nothing: an empty node.
    Nothing,
}

/// A fill of rows of memory.
#[derive(Clone)]
pub struct Fill {
    /// Address of the first row.
    pub to: u64,
    /// The element, of 1, 2 or 4 bytes.
    pub pattern: Box<[u8]>,
    /// Distance between rows in bytes.
    pub pitch: u64,
    /// Elements per row.
    pub width: u64,
    /// Number of rows.
    pub height: u64,
}

impl Work {
    /// What is wrong with it as far as a call can know that returns before it is done.
    pub fn check(&self, context: &Arc<Context>) -> Outcome {
        match self {
            Work::Kernel(launch) => launch.check(),
            Work::Copy(copy) => copy.check(context),
            Work::Fill(fill) => fill.check(context),
            Work::Host(function, _) => function.check(),
            Work::Free(address) => accept_free(context, *address),
            Work::Memory(operations) => memory_operation::check(operations, context),
            _ => Ok(()),
        }
    }

    /// Whether the call that submits it waits for it (CUDA Driver API, "API synchronization behavior"), so that the program knows that it
    /// is done: it touches memory that the program may change after the call has returned.
    pub fn is_waited_for(&self, context: &Context) -> bool {
        match self {
            Work::Kernel(_) => asked_to_block(),
            Work::Copy(copy) => copy.touches_pageable(context),
            Work::Fill(fill) => is_for_host(context, fill.to),
            _ => false,
        }
    }

    /// Whether the call may return as soon as the source is in a staging area, of a copy that [the call waits for](Work::is_waited_for) here:
    /// the transfer to the device may not have begun (CUDA Driver API, "API synchronization behavior").
    pub fn is_only_staged(&self, context: &Context) -> bool {
        matches!(self, Work::Copy(copy) if copy.is_staged(context))
    }

    /// Whether the call that submits it waits for it for the sake of reports alone, which orders nothing for the program.
    pub fn is_watched(&self) -> bool {
        matches!(self, Work::Kernel(_)) && watches_launches()
    }

    /// If it is a launch: whether it may begin before those before it have ended.
    pub fn is_programmatic(&self) -> Option<bool> {
        match self {
            Work::Kernel(launch) => Some(launch.shape.programmatic),
            _ => None,
        }
    }

    /// What it is, for people.
    pub fn name(&self) -> String {
        match self {
            Work::Kernel(launch) => format!("`{}`", demangled(launch.function.name())),
            Work::Copy(copy) => format!("a copy of {} bytes", copy.extent.iter().product::<usize>()),
            Work::Fill(fill) => format!("a fill of {} bytes", fill.width * fill.height * fill.pattern.len() as u64),
            Work::Free(_) => "a free".into(),
            Work::Graph(_) | Work::Inner(_) => "a graph".into(),
            _ => "an operation".into(),
        }
    }

    /// Performs the work.
    pub fn run(&self, context: &Arc<Context>) -> Outcome {
        match self {
            Work::Kernel(launch) => launch.run(context),
            Work::Copy(copy) => copy.run(context),
            Work::Fill(fill) => fill.run(context),
            Work::Host(function, data) => order::called_back(|| calling_back(|| function.call(*data))),
            Work::Record(event) => {
                event.happen();
                Ok(())
            }
            Work::Graph(exec) => exec.run(context),
            Work::Alloc(memory) => {
                memory.run();
                Ok(())
            }
            Work::Free(address) => free_now(context, *address),
            Work::Memory(operations) => {
                order::lose();
                memory_operation::run(operations, context)
            }
            Work::Branch(branch) => branch.run(context),
            Work::Wait(event) => {
                // Graphs launched earlier that record it are done: this graph's launch waits for them.
                if let Some(mark) = event.recorded() {
                    mark.wait();
                }
                order::thread_waited(&event.clock());
                Ok(())
            }
            // Graphs in nodes become ready before they run.
            Work::Nothing | Work::Inner(_) | Work::Conditional(_) => Ok(()),
        }
    }
}

/// Whether launches return when they are done (`CUDA_LAUNCH_BLOCKING=1`).
fn asked_to_block() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| std::env::var("CUDA_LAUNCH_BLOCKING").is_ok_and(|v| v == "1"))
}

/// Whether an error or a finding must belong to one launch.
fn watches_launches() -> bool {
    static WATCHES: OnceLock<bool> = OnceLock::new();
    *WATCHES.get_or_init(|| crate::process::reports::clears_errors() || crate::checks::watch::wanted().is_some())
}

impl Fill {
    fn check(&self, context: &Context) -> Outcome {
        (0..self.height).try_for_each(|row| {
            let at = self.to.wrapping_add(row.wrapping_mul(self.pitch));
            within(context, at, self.width as usize * self.pattern.len())
        })
    }

    fn run(&self, context: &Context) -> Outcome {
        let memory = context.device_memory();
        crate::process::account::filled(self.width * self.height * self.pattern.len() as u64);
        (0..self.height).try_for_each(|row| {
            let at = self.to.wrapping_add(row.wrapping_mul(self.pitch));
            within(context, at, self.width as usize * self.pattern.len())?;
            order::touches(at, self.width * self.pattern.len() as u64, true);
            memory.fill(at, &self.pattern, self.width).map_err(|_| Code::INVALID_VALUE)
        })
    }
}
