//! User objects (CUDA Driver API, "Graph Management": `cuUserObject*`): objects of the program that live as long as the
//! graphs that use them.

use super::Graph;
use crate::{
    api::api,
    code::{Code, Outcome},
    driver::driver,
    handle::Handle,
    raw::{Callback, Out, UserData},
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, a mandatory flag.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`
const MOVE: u32 = 1;

/// An object of the program; its destructor is called with the last reference.
pub struct OwnedData {
    data: UserData,
    destroy: Callback,
}

impl Drop for OwnedData {
    fn drop(&mut self) {
        let _ = self.destroy.call(self.data); // null is ignored
    }
}

/// The program's references to an object.
pub struct UserObject {
    data: Arc<OwnedData>,
    references: Mutex<u32>,
}

/// A graph's references to objects: their count, by the object's handle.
pub type Kept = HashMap<usize, (u32, Arc<OwnedData>)>;

fn change(object: Handle<UserObject>, change: impl FnOnce(u32) -> Option<u32>) -> Outcome {
    let found = driver()?.user_objects.get(object)?;
    let mut references = found.references.lock();
    *references = change(*references).ok_or(Code::INVALID_VALUE)?;
    if *references == 0 { driver()?.user_objects.remove(object).map(drop) } else { Ok(()) }
}

impl Graph {
    fn retain(&self, object: Handle<UserObject>, count: u32) -> Outcome {
        let data = driver()?.user_objects.get(object)?.data.clone();
        let mut kept = self.kept.lock();
        let held = &mut kept.entry(object.number()).or_insert((0, data)).0;
        *held = held.checked_add(count).ok_or(Code::INVALID_VALUE)?;
        Ok(())
    }

    fn release(&self, object: Handle<UserObject>, count: u32) -> Outcome {
        let mut kept = self.kept.lock();
        let held = &mut kept.get_mut(&object.number()).ok_or(Code::INVALID_VALUE)?.0;
        *held = held.checked_sub(count).ok_or(Code::INVALID_VALUE)?;
        if *held == 0 {
            kept.remove(&object.number());
        }
        Ok(())
    }
}

api! {
    11030 fn cuUserObjectCreate(
        object: Out<Handle<UserObject>>, data: UserData, destroy: Callback, references: u32, flags: u32,
    ) {
        if references == 0 || flags != NO_DESTRUCTOR_SYNC {
            return Err(Code::INVALID_VALUE);
        }
        let data = Arc::new(OwnedData { data, destroy });
        object.set(driver()?.user_objects.add(UserObject { data, references: Mutex::new(references) }))
    }
    11030 fn cuUserObjectRetain(object: Handle<UserObject>, count: u32) { change(object, |n| n.checked_add(count)) }
    11030 fn cuUserObjectRelease(object: Handle<UserObject>, count: u32) { change(object, |n| n.checked_sub(count)) }
    11030 fn cuGraphRetainUserObject(graph: Handle<Graph>, object: Handle<UserObject>, count: u32, flags: u32) {
        driver()?.graphs.get(graph)?.retain(object, count)?;
        if flags == MOVE { change(object, |n| n.checked_sub(count)) } else { Ok(()) }
    }
    11030 fn cuGraphReleaseUserObject(graph: Handle<Graph>, object: Handle<UserObject>, count: u32) {
        driver()?.graphs.get(graph)?.release(object, count)
    }
}
