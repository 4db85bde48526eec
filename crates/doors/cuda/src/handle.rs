//! Handles of contexts, modules, streams and so on. A handle is a key into a table, never an address that is
//! dereferenced, so a stale or forged one is an error and not a crash.

use crate::code::Code;
use parking_lot::RwLock;
use std::{
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// A handle of a `T`; 0 is null.
#[repr(transparent)]
pub struct Handle<T>(usize, PhantomData<fn() -> T>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> Default for Handle<T> {
    fn default() -> Handle<T> {
        Handle::NULL
    }
}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Handle<T>) -> bool {
        self.0 == other.0
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl<T> Handle<T> {
    /// The null handle.
    pub const NULL: Handle<T> = Handle(0, PhantomData);

    /// The handle with this number.
    pub fn of(number: usize) -> Handle<T> {
        Handle(number, PhantomData)
    }

    /// The number passed to C.
    pub fn number(self) -> usize {
        self.0
    }

    /// A small number, unique among handles.
    pub fn ordinal(self) -> u32 {
        (self.0.wrapping_sub(FIRST) / STEP) as u32
    }

    /// Whether the handle is null.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// Numbers are never reused, so handles of destroyed objects stay invalid. They lie outside the address ranges of
/// programs.
static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
const FIRST: usize = 0x6d61_7267_0000;
const STEP: usize = 64;

/// The objects of one type, by handle.
pub struct Table<T> {
    objects: RwLock<HashMap<usize, Arc<T>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { objects: RwLock::default() }
    }
}

impl<T> Table<T> {
    /// Adds an object; returns its handle.
    pub fn add(&self, object: T) -> Handle<T> {
        self.add_with(|_| object).0
    }

    /// Adds an object that is created with its handle.
    pub fn add_with(&self, object: impl FnOnce(Handle<T>) -> T) -> (Handle<T>, Arc<T>) {
        let handle = Handle(NEXT.fetch_add(STEP, Relaxed), PhantomData);
        let object = Arc::new(object(handle));
        self.objects.write().insert(handle.0, object.clone());
        (handle, object)
    }

    /// Gives a handle whose object was removed another one.
    pub fn put_back(&self, handle: Handle<T>, object: T) {
        self.objects.write().insert(handle.0, Arc::new(object));
    }

    /// The object of a handle; [`Code::INVALID_HANDLE`] if there is none.
    pub fn get(&self, handle: Handle<T>) -> Result<Arc<T>, Code> {
        let objects = self.objects.read();
        objects.get(&handle.0).cloned().ok_or(Code::INVALID_HANDLE)
    }

    /// Removes and returns the object of a handle.
    pub fn remove(&self, handle: Handle<T>) -> Result<Arc<T>, Code> {
        let mut objects = self.objects.write();
        objects.remove(&handle.0).ok_or(Code::INVALID_HANDLE)
    }

    /// The object with this number.
    pub fn find_number(&self, number: usize) -> Result<Arc<T>, Code> {
        self.get(Handle::of(number))
    }

    /// Adds a shared object.
    pub fn add_arc(&self, object: Arc<T>) -> Handle<T> {
        let handle = Handle(NEXT.fetch_add(STEP, Relaxed), PhantomData);
        self.objects.write().insert(handle.0, object);
        handle
    }

    /// The handle of an object that satisfies a predicate.
    pub fn find(&self, is: impl Fn(&T) -> bool) -> Option<Handle<T>> {
        let objects = self.objects.read();
        objects.iter().find(|(_, object)| is(object)).map(|(number, _)| Handle(*number, PhantomData))
    }

    /// Calls a function for every object.
    pub fn each(&self, mut of: impl FnMut(&T)) {
        self.objects.read().values().for_each(|object| of(object));
    }

    /// Calls a function with every object; it may keep references to them.
    pub fn each_shared(&self, of: impl FnMut(&Arc<T>)) {
        self.objects.read().values().for_each(of);
    }

    /// Removes all objects that satisfy a predicate.
    pub fn remove_if(&self, of: impl Fn(&T) -> bool) {
        self.objects.write().retain(|_, object| !of(object));
    }
}
