//! Work for a stream: what runs at once, or becomes a node of a graph while the stream is captured.

use crate::{
    code::{Code, Outcome},
    context::Context,
    copy::Copy,
    event::Event,
    graph::{Branch, Conditional, Exec, GraphMemory, Inner},
    launch::Launch,
    memory::{free, within},
    raw::{Callback, UserData},
};
use std::sync::Arc;

/// A piece of work.
#[derive(Clone)]
pub enum Work {
    /// A kernel.
    Kernel(Launch),
    /// A copy.
    Copy(Copy),
    /// Memory filled with a pattern.
    Fill(Fill),
    /// A function of the program.
    Host(Callback, UserData),
    /// An event happens.
    Record(Arc<Event>),
    /// An event is waited for.
    Wait(Arc<Event>),
    /// A graph in a node, as long as the graph around it can change.
    Inner(Arc<Inner>),
    /// A graph that is ready to run.
    Graph(Arc<Exec>),
    /// Memory of the graph is allocated.
    Alloc(Arc<GraphMemory>),
    /// Memory at an address is freed.
    Free(u64),
    /// A choice among graphs, as long as the graph around them can change.
    Conditional(Arc<Conditional>),
    /// A choice among graphs that are ready to run.
    Branch(Arc<Branch>),
    /// Nothing: a node that others wait for.
    Nothing,
}

/// Rows of memory to fill.
#[derive(Clone)]
pub struct Fill {
    /// The first row.
    pub to: u64,
    /// The element, of 1, 2 or 4 bytes.
    pub pattern: Box<[u8]>,
    /// Bytes from row to row.
    pub pitch: u64,
    /// Elements of a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
}

impl Work {
    /// Does it.
    pub fn run(&self, context: &Arc<Context>) -> Outcome {
        match self {
            Work::Kernel(launch) => launch.run(context),
            Work::Copy(copy) => copy.run(context),
            Work::Fill(fill) => fill.run(context),
            Work::Host(function, data) => function.call(*data),
            Work::Record(event) => {
                event.happen();
                Ok(())
            }
            Work::Graph(exec) => exec.run(context),
            Work::Alloc(memory) => memory.run(),
            Work::Free(address) => free(*address),
            Work::Branch(branch) => branch.run(context),
            // What is recorded has happened; graphs in nodes become ready before they run.
            Work::Nothing | Work::Wait(_) | Work::Inner(_) | Work::Conditional(_) => Ok(()),
        }
    }
}

impl Fill {
    fn run(&self, context: &Context) -> Outcome {
        let memory = context.device_memory();
        crate::account::filled(self.width * self.height * self.pattern.len() as u64);
        (0..self.height).try_for_each(|row| {
            let at = self.to.wrapping_add(row.wrapping_mul(self.pitch));
            within(context, at, self.width as usize * self.pattern.len())?;
            memory.fill(at, &self.pattern, self.width).map_err(|_| Code::INVALID_VALUE)
        })
    }
}
