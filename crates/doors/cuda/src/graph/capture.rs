//! Streams that gather their work in a graph. A stream that waits for an event of a captured one is captured too, so that
//! forks and joins of streams become the edges of the graph.

use super::{Graph, NodeRef};
use crate::{
    code::{Code, Outcome},
    driver::{Driver, driver},
    handle::Handle,
    stream::{Stream, StreamHandle},
    work::Work,
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// What a captured stream knows.
pub struct Capture {
    /// Handle of the graph in the making.
    pub handle: Handle<Graph>,
    /// A number that no other capture has; streams of one capture share it.
    pub id: u64,
    /// The stream in which it began.
    pub origin: usize,
    graph: Arc<Graph>,
    /// What the next piece of work waits for.
    last: Vec<Handle<NodeRef>>,
}

/// A place in a captured stream, as an event keeps it.
#[derive(Clone)]
pub struct CapturedAt {
    handle: Handle<Graph>,
    id: u64,
    origin: usize,
    graph: Arc<Graph>,
    last: Vec<Handle<NodeRef>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Capture {
    /// Into a new graph.
    pub fn new(driver: &Driver, origin: StreamHandle) -> Capture {
        let (handle, graph) = driver.graphs.add_with(|_| Graph::default());
        Capture::into(graph, handle, Vec::new(), origin)
    }

    /// Into a graph that is there, after some of its nodes.
    pub fn into(graph: Arc<Graph>, handle: Handle<Graph>, last: Vec<Handle<NodeRef>>, origin: StreamHandle) -> Capture {
        Capture { handle, id: NEXT.fetch_add(1, Relaxed), origin: origin.number(), graph, last }
    }

    /// Adds a piece of work.
    pub fn add(&mut self, work: Work) -> Outcome {
        let node = self.graph.add(work, std::mem::take(&mut self.last))?;
        self.last = vec![node];
        Ok(())
    }

    /// Changes what the next piece of work waits for: these nodes too, or these alone.
    pub fn wait_for(&mut self, nodes: Vec<Handle<NodeRef>>, alone: bool) -> Outcome {
        let driver = driver()?;
        for node in &nodes {
            if !Arc::ptr_eq(&driver.nodes.get(*node)?.graph, &self.graph) {
                return Err(Code::INVALID_VALUE);
            }
        }
        if alone {
            self.last.clear();
        }
        for node in nodes {
            if !self.last.contains(&node) {
                self.last.push(node);
            }
        }
        Ok(())
    }

    /// What an event that is recorded now remembers.
    pub fn here(&self) -> CapturedAt {
        let Capture { handle, id, origin, graph, last } = self;
        CapturedAt { handle: *handle, id: *id, origin: *origin, graph: graph.clone(), last: last.clone() }
    }

    /// The nodes that the next one waits for, as an array for C that is good until the stream gets more work.
    pub fn last_for_c(&self) -> (u64, usize) {
        (self.last.as_ptr().expose_provenance() as u64, self.last.len())
    }

    /// Ends the capture in streams that joined it.
    pub fn leave_others(&self, driver: &Driver) {
        driver.streams.each(|stream| {
            let mut capture = stream.capture();
            if capture.as_ref().is_some_and(|c| c.id == self.id) {
                *capture = None;
            }
        });
    }
}

impl CapturedAt {
    /// Makes a stream wait for this place: it joins the capture, or adds an edge.
    pub fn join(self, stream: &Stream) -> Outcome {
        let CapturedAt { handle, id, origin, graph, last } = self;
        let mut capture = stream.capture();
        match &mut *capture {
            None => *capture = Some(Capture { handle, id, origin, graph, last }),
            Some(other) if other.id != id => return Err(Code::STREAM_CAPTURE_ISOLATION),
            Some(own) => {
                for node in last {
                    if !own.last.contains(&node) {
                        own.last.push(node);
                    }
                }
            }
        }
        Ok(())
    }
}
