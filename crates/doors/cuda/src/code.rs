//! `CUresult`: error codes of the driver API with names and descriptions, and the mapping of margay's errors to them.

use margay_exec::{FaultKind, Stop};
use margay_runtime::Error;

/// A `CUresult`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Code(u32);

/// The result of an API function.
pub type Outcome = Result<(), Code>;

impl Code {
    /// The number returned to C.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Name and description of a code; `None` if there is no such code.
    pub fn of(number: u32) -> Option<(&'static str, &'static str)> {
        CODES.iter().find(|(n, ..)| *n == number).map(|(_, name, text)| (*name, *text))
    }

    /// `CUDA_ERROR_INVALID_VALUE`
    pub fn name(self) -> &'static str {
        Code::of(self.0).map_or("an unknown code", |(name, _)| name)
    }

    /// Whether the error is sticky: the context is unusable afterwards.
    pub const fn is_sticky(self) -> bool {
        matches!(self.0, 700 | 702 | 710 | 714..=719)
    }
}

macro_rules! codes {
    ($($name:ident = $number:literal $c:literal: $text:literal;)*) => {
        // `cuGetErrorName` knows all codes; only some occur here.
        #[allow(dead_code)]
        impl Code {
            $(#[doc = $text] pub const $name: Code = Code($number);)*
        }

        /// Number, name and description of every code.
        const CODES: &[(u32, &str, &str)] = &[$(($number, $c, $text),)*];
    };
}

codes! {
    SUCCESS = 0 "CUDA_SUCCESS": "no error";
    INVALID_VALUE = 1 "CUDA_ERROR_INVALID_VALUE": "invalid argument";
    OUT_OF_MEMORY = 2 "CUDA_ERROR_OUT_OF_MEMORY": "out of memory";
    NOT_INITIALIZED = 3 "CUDA_ERROR_NOT_INITIALIZED": "initialization error";
    DEINITIALIZED = 4 "CUDA_ERROR_DEINITIALIZED": "driver shutting down";
    PROFILER_DISABLED = 5 "CUDA_ERROR_PROFILER_DISABLED": "profiler disabled while using external profiling tool";
    PROFILER_NOT_INITIALIZED = 6 "CUDA_ERROR_PROFILER_NOT_INITIALIZED": "profiler not initialized: call cudaProfilerInitialize()";
    PROFILER_ALREADY_STARTED = 7 "CUDA_ERROR_PROFILER_ALREADY_STARTED": "profiler already started";
    PROFILER_ALREADY_STOPPED = 8 "CUDA_ERROR_PROFILER_ALREADY_STOPPED": "profiler already stopped";
    STUB_LIBRARY = 34 "CUDA_ERROR_STUB_LIBRARY": "the library is a stub";
    CALL_REQUIRES_NEWER_DRIVER = 36 "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER": "API call is not supported in the installed CUDA driver";
    DEVICE_UNAVAILABLE = 46 "CUDA_ERROR_DEVICE_UNAVAILABLE": "CUDA-capable device(s) is/are busy or unavailable";
    MULTICAST_RESOURCE_FULL = 47 "CUDA_ERROR_MULTICAST_RESOURCE_FULL": "multicast resource full";
    NO_DEVICE = 100 "CUDA_ERROR_NO_DEVICE": "no CUDA-capable device is detected";
    INVALID_DEVICE = 101 "CUDA_ERROR_INVALID_DEVICE": "invalid device ordinal";
    DEVICE_NOT_LICENSED = 102 "CUDA_ERROR_DEVICE_NOT_LICENSED": "device doesn't have valid Grid license";
    INVALID_IMAGE = 200 "CUDA_ERROR_INVALID_IMAGE": "device kernel image is invalid";
    INVALID_CONTEXT = 201 "CUDA_ERROR_INVALID_CONTEXT": "invalid device context";
    CONTEXT_ALREADY_CURRENT = 202 "CUDA_ERROR_CONTEXT_ALREADY_CURRENT": "context already current";
    MAP_FAILED = 205 "CUDA_ERROR_MAP_FAILED": "mapping of buffer object failed";
    UNMAP_FAILED = 206 "CUDA_ERROR_UNMAP_FAILED": "unmapping of buffer object failed";
    ARRAY_IS_MAPPED = 207 "CUDA_ERROR_ARRAY_IS_MAPPED": "array is mapped";
    ALREADY_MAPPED = 208 "CUDA_ERROR_ALREADY_MAPPED": "resource already mapped";
    NO_BINARY_FOR_GPU = 209 "CUDA_ERROR_NO_BINARY_FOR_GPU": "no kernel image is available for execution on the device";
    ALREADY_ACQUIRED = 210 "CUDA_ERROR_ALREADY_ACQUIRED": "resource already acquired";
    NOT_MAPPED = 211 "CUDA_ERROR_NOT_MAPPED": "resource not mapped";
    NOT_MAPPED_AS_ARRAY = 212 "CUDA_ERROR_NOT_MAPPED_AS_ARRAY": "resource not mapped as array";
    NOT_MAPPED_AS_POINTER = 213 "CUDA_ERROR_NOT_MAPPED_AS_POINTER": "resource not mapped as pointer";
    ECC_UNCORRECTABLE = 214 "CUDA_ERROR_ECC_UNCORRECTABLE": "uncorrectable ECC error encountered";
    UNSUPPORTED_LIMIT = 215 "CUDA_ERROR_UNSUPPORTED_LIMIT": "limit is not supported on this architecture";
    CONTEXT_ALREADY_IN_USE = 216 "CUDA_ERROR_CONTEXT_ALREADY_IN_USE": "exclusive-thread device already in use by a different thread";
    PEER_ACCESS_UNSUPPORTED = 217 "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED": "peer access is not supported between these two devices";
    INVALID_PTX = 218 "CUDA_ERROR_INVALID_PTX": "a PTX JIT compilation failed";
    INVALID_GRAPHICS_CONTEXT = 219 "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT": "invalid OpenGL or DirectX context";
    NVLINK_UNCORRECTABLE = 220 "CUDA_ERROR_NVLINK_UNCORRECTABLE": "uncorrectable NVLink error detected during the execution";
    JIT_COMPILER_NOT_FOUND = 221 "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": "PTX JIT compiler library not found";
    UNSUPPORTED_PTX_VERSION = 222 "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the provided PTX was compiled with an unsupported toolchain.";
    JIT_COMPILATION_DISABLED = 223 "CUDA_ERROR_JIT_COMPILATION_DISABLED": "PTX JIT compilation was disabled";
    UNSUPPORTED_EXEC_AFFINITY = 224 "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY": "the provided execution affinity is not supported";
    UNSUPPORTED_DEVSIDE_SYNC = 225 "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC": "the provided PTX contains unsupported call to cudaDeviceSynchronize";
    CONTAINED = 226 "CUDA_ERROR_CONTAINED": "Invalid access of peer GPU memory over nvlink or a hardware error";
    INSUFFICIENT_LOADER_VERSION = 227 "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION": "Loader version is insufficient for fatbin";
    INVALID_SOURCE = 300 "CUDA_ERROR_INVALID_SOURCE": "device kernel image is invalid";
    FILE_NOT_FOUND = 301 "CUDA_ERROR_FILE_NOT_FOUND": "file not found";
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302 "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND": "shared object symbol not found";
    SHARED_OBJECT_INIT_FAILED = 303 "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED": "shared object initialization failed";
    OPERATING_SYSTEM = 304 "CUDA_ERROR_OPERATING_SYSTEM": "OS call failed or operation not supported on this OS";
    INVALID_HANDLE = 400 "CUDA_ERROR_INVALID_HANDLE": "invalid resource handle";
    ILLEGAL_STATE = 401 "CUDA_ERROR_ILLEGAL_STATE": "the operation cannot be performed in the present state";
    LOSSY_QUERY = 402 "CUDA_ERROR_LOSSY_QUERY": "attempted introspection would be semantically lossy";
    NOT_FOUND = 500 "CUDA_ERROR_NOT_FOUND": "named symbol not found";
    NOT_READY = 600 "CUDA_ERROR_NOT_READY": "device not ready";
    ILLEGAL_ADDRESS = 700 "CUDA_ERROR_ILLEGAL_ADDRESS": "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701 "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702 "CUDA_ERROR_LAUNCH_TIMEOUT": "the launch timed out and was terminated";
    LAUNCH_INCOMPATIBLE_TEXTURING = 703 "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING": "launch uses incompatible texturing mode";
    PEER_ACCESS_ALREADY_ENABLED = 704 "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED": "peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705 "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED": "peer access has not been enabled";
    PRIMARY_CONTEXT_ACTIVE = 708 "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE": "cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709 "CUDA_ERROR_CONTEXT_IS_DESTROYED": "context is destroyed";
    ASSERT = 710 "CUDA_ERROR_ASSERT": "device-side assert triggered";
    TOO_MANY_PEERS = 711 "CUDA_ERROR_TOO_MANY_PEERS": "peer mapping resources exhausted";
    HOST_MEMORY_ALREADY_REGISTERED = 712 "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED": "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713 "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED": "pointer does not correspond to a registered memory region";
    HARDWARE_STACK_ERROR = 714 "CUDA_ERROR_HARDWARE_STACK_ERROR": "hardware stack error";
    ILLEGAL_INSTRUCTION = 715 "CUDA_ERROR_ILLEGAL_INSTRUCTION": "an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716 "CUDA_ERROR_MISALIGNED_ADDRESS": "misaligned address";
    INVALID_ADDRESS_SPACE = 717 "CUDA_ERROR_INVALID_ADDRESS_SPACE": "operation not supported on global/shared address space";
    INVALID_PC = 718 "CUDA_ERROR_INVALID_PC": "invalid program counter";
    LAUNCH_FAILED = 719 "CUDA_ERROR_LAUNCH_FAILED": "unspecified launch failure";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720 "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": "too many blocks in cooperative launch";
    TENSOR_MEMORY_LEAK = 721 "CUDA_ERROR_TENSOR_MEMORY_LEAK": "tensor memory not completely freed";
    NOT_PERMITTED = 800 "CUDA_ERROR_NOT_PERMITTED": "operation not permitted";
    NOT_SUPPORTED = 801 "CUDA_ERROR_NOT_SUPPORTED": "operation not supported";
    SYSTEM_NOT_READY = 802 "CUDA_ERROR_SYSTEM_NOT_READY": "system not yet initialized";
    SYSTEM_DRIVER_MISMATCH = 803 "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "system has unsupported display driver / cuda driver combination";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804 "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": "forward compatibility was attempted on non supported HW";
    MPS_CONNECTION_FAILED = 805 "CUDA_ERROR_MPS_CONNECTION_FAILED": "MPS client failed to connect to the MPS control daemon or the MPS server";
    MPS_RPC_FAILURE = 806 "CUDA_ERROR_MPS_RPC_FAILURE": "the remote procedural call between the MPS server and the MPS client failed";
    MPS_SERVER_NOT_READY = 807 "CUDA_ERROR_MPS_SERVER_NOT_READY": "MPS server is not ready to accept new MPS client requests";
    MPS_MAX_CLIENTS_REACHED = 808 "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED": "the hardware resources required to create MPS client have been exhausted";
    MPS_MAX_CONNECTIONS_REACHED = 809 "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED": "the hardware resources required to support device connections have been exhausted";
    MPS_CLIENT_TERMINATED = 810 "CUDA_ERROR_MPS_CLIENT_TERMINATED": "the MPS client has been terminated by the server";
    CDP_NOT_SUPPORTED = 811 "CUDA_ERROR_CDP_NOT_SUPPORTED": "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it";
    CDP_VERSION_MISMATCH = 812 "CUDA_ERROR_CDP_VERSION_MISMATCH": "unsupported interaction between different versions of CUDA Dynamic Parallelism";
    STREAM_CAPTURE_UNSUPPORTED = 900 "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901 "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": "operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE = 902 "CUDA_ERROR_STREAM_CAPTURE_MERGE": "operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED = 903 "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED": "capture was not initiated in this stream";
    STREAM_CAPTURE_UNJOINED = 904 "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": "capturing stream has unjoined work";
    STREAM_CAPTURE_ISOLATION = 905 "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": "dependency created on uncaptured work in another stream";
    STREAM_CAPTURE_IMPLICIT = 906 "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": "operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907 "CUDA_ERROR_CAPTURED_EVENT": "operation not permitted on an event last recorded in a capturing stream";
    STREAM_CAPTURE_WRONG_THREAD = 908 "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD": "attempt to terminate a thread-local capture sequence from another thread";
    TIMEOUT = 909 "CUDA_ERROR_TIMEOUT": "wait operation timed out";
    GRAPH_EXEC_UPDATE_FAILURE = 910 "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE": "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
    EXTERNAL_DEVICE = 911 "CUDA_ERROR_EXTERNAL_DEVICE": "an async error has occured in external entity outside of CUDA";
    INVALID_CLUSTER_SIZE = 912 "CUDA_ERROR_INVALID_CLUSTER_SIZE": "misconfigured cluster dimensions or cluster scheduling policy";
    FUNCTION_NOT_LOADED = 913 "CUDA_ERROR_FUNCTION_NOT_LOADED": "the function handle is not loaded when calling an API that requires a loaded function";
    INVALID_RESOURCE_TYPE = 914 "CUDA_ERROR_INVALID_RESOURCE_TYPE": "one or more resources passed in are not valid resource types for the operation";
    INVALID_RESOURCE_CONFIGURATION = 915 "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION": "one or more resources are insufficient or non-applicable for the operation";
    KEY_ROTATION = 916 "CUDA_ERROR_KEY_ROTATION": "key rotation";
    STREAM_DETACHED = 917 "CUDA_ERROR_STREAM_DETACHED": "API call not permitted since the green context associated with the stream has been destroyed";
    GRAPH_RECAPTURE_FAILURE = 918 "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE": "recapturing to the source graph failed and had to be terminated";
    FABRIC_NOT_READY = 919 "CUDA_ERROR_FABRIC_NOT_READY": "GPU fabric is not ready within the probe wait budget; application may retry (see CUDA_FABRIC_INIT_TIMEOUT_MS)";
    UNKNOWN = 999 "CUDA_ERROR_UNKNOWN": "unknown error";
}

impl From<&Error> for Code {
    fn from(error: &Error) -> Code {
        match error {
            Error::Rejected(_) => Code::INVALID_PTX,
            Error::Lower(e) if e.unsupported => Code::NOT_SUPPORTED,
            Error::Lower(_) => Code::INVALID_PTX,
            Error::NoPlan(_) => Code::NOT_SUPPORTED,
            Error::NoSuch { .. } => Code::NOT_FOUND,
            Error::BadLaunch(_) | Error::BadAddress { .. } | Error::BadArray(_) => Code::INVALID_VALUE,
            Error::OutOfMemory { .. } => Code::OUT_OF_MEMORY,
            Error::Stopped(report) => match &report.stop {
                Stop::Fault(fault) => of_fault(&fault.kind),
                Stop::Unsupported(_) => Code::NOT_SUPPORTED,
                Stop::Exhausted(_) => Code::OUT_OF_MEMORY,
                Stop::Bug(_) => Code::UNKNOWN,
            },
            Error::Canceled => Code::LAUNCH_TIMEOUT,
        }
    }
}

/// The code that a GPU would report for a fault.
fn of_fault(kind: &FaultKind) -> Code {
    match kind {
        FaultKind::OutOfBounds(_) | FaultKind::UseAfterFree(_) | FaultKind::ReadOnly(_) | FaultKind::BadFree { .. } => {
            Code::ILLEGAL_ADDRESS
        }
        FaultKind::Misaligned(_) => Code::MISALIGNED_ADDRESS,
        FaultKind::Trap | FaultKind::Breakpoint | FaultKind::Barrier(_) | FaultKind::Hazard(_) => Code::LAUNCH_FAILED,
        FaultKind::Assert(..) => Code::ASSERT,
        FaultKind::Stack(_) => Code::HARDWARE_STACK_ERROR,
        FaultKind::BadTarget(_) | FaultKind::Undefined(_) => Code::INVALID_PC,
        FaultKind::Deadlock(_) => Code::LAUNCH_TIMEOUT,
        FaultKind::Descriptor(_) | FaultKind::BadHandle(_) => Code::ILLEGAL_INSTRUCTION,
    }
}
