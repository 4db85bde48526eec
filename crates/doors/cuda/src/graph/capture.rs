//! Stream capture: streams that add their work to a graph. A stream that waits for an event of a captured stream is
//! captured too, so forks and joins of streams become edges of the graph.

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

/// The capture state of a stream.
pub struct Capture {
    /// Handle of the graph under construction.
    pub handle: Handle<Graph>,
    /// Unique number of the capture, shared by its streams.
    pub id: u64,
    /// The stream in which it began.
    pub origin: usize,
    graph: Arc<Graph>,
    /// Dependencies of the next node.
    last: Vec<Handle<NodeRef>>,
}

/// A place in a captured stream, stored in events.
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
    /// Starts a capture into a new graph.
    pub fn new(driver: &Driver, origin: StreamHandle) -> Capture {
        let (handle, graph) = driver.graphs.add_with(|_| Graph::default());
        Capture::into(graph, handle, Vec::new(), origin)
    }

    /// Starts a capture into an existing graph, after some of its nodes.
    pub fn into(graph: Arc<Graph>, handle: Handle<Graph>, last: Vec<Handle<NodeRef>>, origin: StreamHandle) -> Capture {
        Capture { handle, id: NEXT.fetch_add(1, Relaxed), origin: origin.number(), graph, last }
    }

    /// Adds work as a node.
    pub fn add(&mut self, work: Work) -> Outcome {
        let node = self.graph.add(work, std::mem::take(&mut self.last))?;
        self.last = vec![node];
        Ok(())
    }

    /// Adds to or replaces (`alone`) the dependencies of the next node.
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

    /// The current place, for events.
    pub fn here(&self) -> CapturedAt {
        let Capture { handle, id, origin, graph, last } = self;
        CapturedAt { handle: *handle, id: *id, origin: *origin, graph: graph.clone(), last: last.clone() }
    }

    /// The dependencies of the next node as a C array, valid until the stream gets more work.
    pub fn last_for_c(&self) -> (u64, usize) {
        (self.last.as_ptr().expose_provenance() as u64, self.last.len())
    }

    /// Ends the capture in streams that have joined it.
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
    /// Makes a stream wait for this place: it joins the capture, or gets an edge.
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
