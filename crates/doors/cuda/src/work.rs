//! Work of a stream: run at submission, or added to a graph while the stream is captured.

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
    /// Performs the work.
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
            // Recorded events have occurred; child graphs are instantiated before they run.
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
