//! Graphs in the language of Graphviz (`cuGraphDebugDotPrint`).

use super::Graph;
use crate::{api::api, code::Code, driver::driver, handle::Handle, raw::Text, work::Work};
use std::fmt::Write;

/// The label of a node.
fn label(work: &Work) -> String {
    match work {
        Work::Kernel(launch) => {
            let ([x, y, z], [bx, by, bz]) = (launch.shape.grid, launch.shape.block);
            format!("{} <<<({x},{y},{z}),({bx},{by},{bz})>>>", launch.function.name())
        }
        Work::Copy(copy) => format!("copy {:?} bytes", copy.extent),
        Work::Fill(fill) => format!("fill {} x {}", fill.width, fill.height),
        Work::Alloc(memory) => format!("allocate {} bytes", memory.bytes),
        Work::Free(_) => "free".into(),
        Work::Host(..) => "host".into(),
        Work::Inner(_) | Work::Graph(_) => "graph".into(),
        Work::Wait(_) => "wait".into(),
        Work::Record(_) => "record".into(),
        Work::Memory(_) => "memory operations".into(),
        Work::Conditional(_) | Work::Branch(_) => "conditional".into(),
        Work::Nothing => "empty".into(),
    }
}

fn render(graph: &Graph) -> Result<String, Code> {
    let mut dot = String::from("digraph graph_1 {\n");
    for (handle, node) in graph.sorted()? {
        let text = label(&node.work).replace(['\\', '"'], "_");
        let _ = writeln!(dot, "  node_{} [shape=box, label=\"{text}\"];", handle.ordinal()); // a string takes everything
        for before in &node.after {
            let _ = writeln!(dot, "  node_{} -> node_{};", before.ordinal(), handle.ordinal());
        }
    }
    dot.push_str("}\n");
    Ok(dot)
}

api! {
    11030 fn cuGraphDebugDotPrint(of: Handle<Graph>, path: Text, _flags: u32) {
        let graph = driver()?.graphs.get(of)?;
        std::fs::write(path.text()?, render(&graph)?).map_err(|_| Code::OPERATING_SYSTEM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_what_nodes_do() {
        assert_eq!(label(&Work::Memory([].into())), "memory operations");
        assert_eq!(label(&Work::Free(0)), "free");
        assert_eq!(label(&Work::Nothing), "empty");
    }
}
