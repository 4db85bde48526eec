//! Handles: what C sees of a context, a module, a stream. A handle is a number that a table knows, never an address that is
//! followed, so a stale or invented one is an error and not a crash.

use crate::code::Code;
use std::{
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// A handle of a `T`; null is 0.
#[repr(transparent)]
pub struct Handle<T>(usize, PhantomData<fn() -> T>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        *self
    }
}

impl<T> Copy for Handle<T> {}

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
    /// No object.
    pub const NULL: Handle<T> = Handle(0, PhantomData);

    /// The handle of a number that C sees.
    pub fn of(number: usize) -> Handle<T> {
        Handle(number, PhantomData)
    }

    /// The number that C sees.
    pub fn number(self) -> usize {
        self.0
    }

    /// A small number that no other handle has.
    pub fn ordinal(self) -> u32 {
        (self.0.wrapping_sub(FIRST) / STEP) as u32
    }

    /// Whether it names no object.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// Numbers are never used twice, so that a handle of something destroyed stays wrong. They look like no address of a
/// program.
static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
const FIRST: usize = 0x6d61_7267_0000;
const STEP: usize = 64;

/// The objects of one kind.
pub struct Table<T> {
    objects: RwLock<HashMap<usize, Arc<T>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { objects: RwLock::default() }
    }
}

impl<T> Table<T> {
    /// A handle for a new object.
    pub fn add(&self, object: T) -> Handle<T> {
        self.add_with(|_| object).0
    }

    /// The same, for an object that knows its own handle.
    pub fn add_with(&self, object: impl FnOnce(Handle<T>) -> T) -> (Handle<T>, Arc<T>) {
        let handle = Handle(NEXT.fetch_add(STEP, Relaxed), PhantomData);
        let object = Arc::new(object(handle));
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(handle.0, object.clone());
        (handle, object)
    }

    /// The object; [`Code::INVALID_HANDLE`] where there is none.
    pub fn get(&self, handle: Handle<T>) -> Result<Arc<T>, Code> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(&handle.0).cloned().ok_or(Code::INVALID_HANDLE)
    }

    /// Takes the object out.
    pub fn remove(&self, handle: Handle<T>) -> Result<Arc<T>, Code> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.remove(&handle.0).ok_or(Code::INVALID_HANDLE)
    }

    /// The object of that number.
    pub fn find_number(&self, number: usize) -> Result<Arc<T>, Code> {
        self.get(Handle::of(number))
    }

    /// A handle for an object that is shared already.
    pub fn add_arc(&self, object: Arc<T>) -> Handle<T> {
        let handle = Handle(NEXT.fetch_add(STEP, Relaxed), PhantomData);
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(handle.0, object);
        handle
    }

    /// The handle of an object of which something is true.
    pub fn find(&self, is: impl Fn(&T) -> bool) -> Option<Handle<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.iter().find(|(_, object)| is(object)).map(|(number, _)| Handle(*number, PhantomData))
    }

    /// Does something with every object.
    pub fn each(&self, mut of: impl FnMut(&T)) {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).values().for_each(|object| of(object));
    }

    /// Takes out all objects of which something is true.
    pub fn remove_if(&self, of: impl Fn(&T) -> bool) {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).retain(|_, object| !of(object));
    }
}
