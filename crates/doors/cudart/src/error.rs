//! `cudaError_t`: codes, names and descriptions. Most codes equal the driver's; where they differ, [`Code::outcome`]
//! translates.

/// A `cudaError_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(u32);

/// The result of an API function.
pub type Outcome = Result<(), Code>;

impl Code {
    /// No error.
    pub const SUCCESS: Code = Code(0);
    /// `cudaErrorInvalidValue`
    pub const INVALID_VALUE: Code = Code(1);
    /// `cudaErrorDeviceUninitialized`, the driver's error for an invalid context
    pub const DEVICE_UNINITIALIZED: Code = Code(201);
    /// `cudaErrorInsufficientDriver`
    pub const INSUFFICIENT_DRIVER: Code = Code(35);
    /// `cudaErrorInvalidDeviceFunction`
    pub const INVALID_DEVICE_FUNCTION: Code = Code(98);
    /// `cudaErrorInvalidDevice`
    pub const INVALID_DEVICE: Code = Code(101);
    /// `cudaErrorInvalidSymbol`
    pub const INVALID_SYMBOL: Code = Code(13);
    /// `cudaErrorInvalidTexture`
    #[cfg(cuda11)]
    pub const INVALID_TEXTURE: Code = Code(18);
    /// `cudaErrorInvalidTextureBinding`
    #[cfg(cuda11)]
    pub const INVALID_TEXTURE_BINDING: Code = Code(19);
    /// `cudaErrorInvalidSurface`
    #[cfg(cuda11)]
    pub const INVALID_SURFACE: Code = Code(37);
    /// `cudaErrorSymbolNotFound`
    pub const SYMBOL_NOT_FOUND: Code = Code(500);
    /// `cudaErrorNoKernelImageForDevice`
    pub const NO_BINARY_FOR_GPU: Code = Code(209);
    /// `cudaErrorInvalidPtx`
    pub const INVALID_PTX: Code = Code(218);
    /// `cudaErrorNotReady`
    pub const NOT_READY: Code = Code(600);
    /// `cudaErrorNotSupported`
    pub const NOT_SUPPORTED: Code = Code(801);
    /// `cudaErrorUnknown`
    pub const UNKNOWN: Code = Code(999);
    /// `cudaErrorMissingConfiguration`
    pub const MISSING_CONFIGURATION: Code = Code(52);
    /// `cudaErrorPeerAccessUnsupported`
    pub const PEER_ACCESS_UNSUPPORTED: Code = Code(217);
    /// `cudaErrorInvalidPitchValue`
    pub const INVALID_PITCH_VALUE: Code = Code(12);
    /// `cudaErrorInvalidMemcpyDirection`
    pub const INVALID_MEMCPY_DIRECTION: Code = Code(21);
    /// `cudaErrorInvalidChannelDescriptor`
    pub const INVALID_CHANNEL_DESCRIPTOR: Code = Code(20);

    /// The number returned to C.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether the error is one after which the context is unusable.
    pub const fn is_sticky(self) -> bool {
        matches!(self.0, 700 | 702 | 710 | 714..=719)
    }

    /// Converts a driver result.
    pub fn outcome(driver: u32) -> Outcome {
        match driver {
            0 => Ok(()),
            other => {
                crate::api::told(Code(other));
                Err(Code(other))
            }
        }
    }

    /// Name and description of an error, NUL-terminated.
    pub fn words(number: u32) -> (&'static str, &'static str) {
        let known = WORDS.iter().find(|(n, ..)| *n == number);
        known.map_or(("unrecognized error code\0", "unrecognized error code\0"), |(_, name, text)| (*name, *text))
    }
}

/// Code, name and description of every error.
#[rustfmt::skip]
const WORDS: &[(u32, &str, &str)] = &[
    (0, "cudaSuccess\0", "no error\0"),
    (1, "cudaErrorInvalidValue\0", "invalid argument\0"),
    (2, "cudaErrorMemoryAllocation\0", "out of memory\0"),
    (3, "cudaErrorInitializationError\0", "initialization error\0"),
    (4, "cudaErrorCudartUnloading\0", "cudart unloading\0"),
    (5, "cudaErrorProfilerDisabled\0", "profiler disabled\0"),
    (6, "cudaErrorProfilerNotInitialized\0", "profiler not initialized\0"),
    (7, "cudaErrorProfilerAlreadyStarted\0", "profiler already started\0"),
    (8, "cudaErrorProfilerAlreadyStopped\0", "profiler already stopped\0"),
    (9, "cudaErrorInvalidConfiguration\0", "invalid configuration argument\0"),
    (10, "cudaErrorVersionTranslation\0", "version translation\0"),
    (12, "cudaErrorInvalidPitchValue\0", "invalid pitch value\0"),
    (13, "cudaErrorInvalidSymbol\0", "invalid device symbol\0"),
    (16, "cudaErrorInvalidHostPointer\0", "invalid host pointer\0"),
    (17, "cudaErrorInvalidDevicePointer\0", "invalid device pointer\0"),
    (18, "cudaErrorInvalidTexture\0", "invalid texture\0"),
    (19, "cudaErrorInvalidTextureBinding\0", "invalid texture binding\0"),
    (20, "cudaErrorInvalidChannelDescriptor\0", "invalid channel descriptor\0"),
    (21, "cudaErrorInvalidMemcpyDirection\0", "invalid memcpy direction\0"),
    (22, "cudaErrorAddressOfConstant\0", "address of constant\0"),
    (23, "cudaErrorTextureFetchFailed\0", "texture fetch failed\0"),
    (24, "cudaErrorTextureNotBound\0", "texture not bound\0"),
    (25, "cudaErrorSynchronizationError\0", "synchronization error\0"),
    (26, "cudaErrorInvalidFilterSetting\0", "invalid filter setting\0"),
    (27, "cudaErrorInvalidNormSetting\0", "invalid norm setting\0"),
    (28, "cudaErrorMixedDeviceExecution\0", "mixed device execution\0"),
    (31, "cudaErrorNotYetImplemented\0", "not yet implemented\0"),
    (32, "cudaErrorMemoryValueTooLarge\0", "memory value too large\0"),
    (34, "cudaErrorStubLibrary\0", "stub library\0"),
    (35, "cudaErrorInsufficientDriver\0", "CUDA driver version is insufficient for CUDA runtime version\0"),
    (36, "cudaErrorCallRequiresNewerDriver\0", "call requires newer driver\0"),
    (37, "cudaErrorInvalidSurface\0", "invalid surface\0"),
    (43, "cudaErrorDuplicateVariableName\0", "duplicate variable name\0"),
    (44, "cudaErrorDuplicateTextureName\0", "duplicate texture name\0"),
    (45, "cudaErrorDuplicateSurfaceName\0", "duplicate surface name\0"),
    (46, "cudaErrorDevicesUnavailable\0", "devices unavailable\0"),
    (49, "cudaErrorIncompatibleDriverContext\0", "incompatible driver context\0"),
    (52, "cudaErrorMissingConfiguration\0", "missing configuration\0"),
    (53, "cudaErrorPriorLaunchFailure\0", "prior launch failure\0"),
    (65, "cudaErrorLaunchMaxDepthExceeded\0", "launch max depth exceeded\0"),
    (66, "cudaErrorLaunchFileScopedTex\0", "launch file scoped tex\0"),
    (67, "cudaErrorLaunchFileScopedSurf\0", "launch file scoped surf\0"),
    (68, "cudaErrorSyncDepthExceeded\0", "sync depth exceeded\0"),
    (69, "cudaErrorLaunchPendingCountExceeded\0", "launch pending count exceeded\0"),
    (98, "cudaErrorInvalidDeviceFunction\0", "invalid device function\0"),
    (100, "cudaErrorNoDevice\0", "no CUDA-capable device is detected\0"),
    (101, "cudaErrorInvalidDevice\0", "invalid device ordinal\0"),
    (102, "cudaErrorDeviceNotLicensed\0", "device not licensed\0"),
    (103, "cudaErrorSoftwareValidityNotEstablished\0", "software validity not established\0"),
    (127, "cudaErrorStartupFailure\0", "startup failure\0"),
    (200, "cudaErrorInvalidKernelImage\0", "invalid kernel image\0"),
    (201, "cudaErrorDeviceUninitialized\0", "device uninitialized\0"),
    (205, "cudaErrorMapBufferObjectFailed\0", "map buffer object failed\0"),
    (206, "cudaErrorUnmapBufferObjectFailed\0", "unmap buffer object failed\0"),
    (207, "cudaErrorArrayIsMapped\0", "array is mapped\0"),
    (208, "cudaErrorAlreadyMapped\0", "already mapped\0"),
    (209, "cudaErrorNoKernelImageForDevice\0", "no kernel image is available for execution on the device\0"),
    (210, "cudaErrorAlreadyAcquired\0", "already acquired\0"),
    (211, "cudaErrorNotMapped\0", "not mapped\0"),
    (212, "cudaErrorNotMappedAsArray\0", "not mapped as array\0"),
    (213, "cudaErrorNotMappedAsPointer\0", "not mapped as pointer\0"),
    (214, "cudaErrorECCUncorrectable\0", "eccuncorrectable\0"),
    (215, "cudaErrorUnsupportedLimit\0", "unsupported limit\0"),
    (216, "cudaErrorDeviceAlreadyInUse\0", "device already in use\0"),
    (217, "cudaErrorPeerAccessUnsupported\0", "peer access unsupported\0"),
    (218, "cudaErrorInvalidPtx\0", "a PTX JIT compilation failed\0"),
    (219, "cudaErrorInvalidGraphicsContext\0", "invalid graphics context\0"),
    (220, "cudaErrorNvlinkUncorrectable\0", "nvlink uncorrectable\0"),
    (221, "cudaErrorJitCompilerNotFound\0", "jit compiler not found\0"),
    (222, "cudaErrorUnsupportedPtxVersion\0", "unsupported ptx version\0"),
    (223, "cudaErrorJitCompilationDisabled\0", "jit compilation disabled\0"),
    (224, "cudaErrorUnsupportedExecAffinity\0", "unsupported exec affinity\0"),
    (225, "cudaErrorUnsupportedDevSideSync\0", "unsupported dev side sync\0"),
    (226, "cudaErrorContained\0", "contained\0"),
    (227, "cudaErrorInsufficientLoaderVersion\0", "insufficient loader version\0"),
    (300, "cudaErrorInvalidSource\0", "invalid source\0"),
    (301, "cudaErrorFileNotFound\0", "file not found\0"),
    (302, "cudaErrorSharedObjectSymbolNotFound\0", "shared object symbol not found\0"),
    (303, "cudaErrorSharedObjectInitFailed\0", "shared object init failed\0"),
    (304, "cudaErrorOperatingSystem\0", "operating system\0"),
    (400, "cudaErrorInvalidResourceHandle\0", "invalid resource handle\0"),
    (401, "cudaErrorIllegalState\0", "illegal state\0"),
    (402, "cudaErrorLossyQuery\0", "lossy query\0"),
    (500, "cudaErrorSymbolNotFound\0", "symbol not found\0"),
    (600, "cudaErrorNotReady\0", "device not ready\0"),
    (700, "cudaErrorIllegalAddress\0", "an illegal memory access was encountered\0"),
    (701, "cudaErrorLaunchOutOfResources\0", "too many resources requested for launch\0"),
    (702, "cudaErrorLaunchTimeout\0", "the launch timed out and was terminated\0"),
    (703, "cudaErrorLaunchIncompatibleTexturing\0", "launch incompatible texturing\0"),
    (704, "cudaErrorPeerAccessAlreadyEnabled\0", "peer access already enabled\0"),
    (705, "cudaErrorPeerAccessNotEnabled\0", "peer access not enabled\0"),
    (708, "cudaErrorSetOnActiveProcess\0", "set on active process\0"),
    (709, "cudaErrorContextIsDestroyed\0", "context is destroyed\0"),
    (710, "cudaErrorAssert\0", "device-side assert triggered\0"),
    (711, "cudaErrorTooManyPeers\0", "too many peers\0"),
    (712, "cudaErrorHostMemoryAlreadyRegistered\0", "host memory already registered\0"),
    (713, "cudaErrorHostMemoryNotRegistered\0", "host memory not registered\0"),
    (714, "cudaErrorHardwareStackError\0", "hardware stack error\0"),
    (715, "cudaErrorIllegalInstruction\0", "illegal instruction\0"),
    (716, "cudaErrorMisalignedAddress\0", "misaligned address\0"),
    (717, "cudaErrorInvalidAddressSpace\0", "invalid address space\0"),
    (718, "cudaErrorInvalidPc\0", "invalid pc\0"),
    (719, "cudaErrorLaunchFailure\0", "unspecified launch failure\0"),
    (720, "cudaErrorCooperativeLaunchTooLarge\0", "cooperative launch too large\0"),
    (721, "cudaErrorTensorMemoryLeak\0", "tensor memory leak\0"),
    (800, "cudaErrorNotPermitted\0", "not permitted\0"),
    (801, "cudaErrorNotSupported\0", "operation not supported\0"),
    (802, "cudaErrorSystemNotReady\0", "system not ready\0"),
    (803, "cudaErrorSystemDriverMismatch\0", "system driver mismatch\0"),
    (804, "cudaErrorCompatNotSupportedOnDevice\0", "compat not supported on device\0"),
    (805, "cudaErrorMpsConnectionFailed\0", "mps connection failed\0"),
    (806, "cudaErrorMpsRpcFailure\0", "mps rpc failure\0"),
    (807, "cudaErrorMpsServerNotReady\0", "mps server not ready\0"),
    (808, "cudaErrorMpsMaxClientsReached\0", "mps max clients reached\0"),
    (809, "cudaErrorMpsMaxConnectionsReached\0", "mps max connections reached\0"),
    (810, "cudaErrorMpsClientTerminated\0", "mps client terminated\0"),
    (811, "cudaErrorCdpNotSupported\0", "cdp not supported\0"),
    (812, "cudaErrorCdpVersionMismatch\0", "cdp version mismatch\0"),
    (900, "cudaErrorStreamCaptureUnsupported\0", "stream capture unsupported\0"),
    (901, "cudaErrorStreamCaptureInvalidated\0", "stream capture invalidated\0"),
    (902, "cudaErrorStreamCaptureMerge\0", "stream capture merge\0"),
    (903, "cudaErrorStreamCaptureUnmatched\0", "stream capture unmatched\0"),
    (904, "cudaErrorStreamCaptureUnjoined\0", "stream capture unjoined\0"),
    (905, "cudaErrorStreamCaptureIsolation\0", "stream capture isolation\0"),
    (906, "cudaErrorStreamCaptureImplicit\0", "stream capture implicit\0"),
    (907, "cudaErrorCapturedEvent\0", "captured event\0"),
    (908, "cudaErrorStreamCaptureWrongThread\0", "stream capture wrong thread\0"),
    (909, "cudaErrorTimeout\0", "timeout\0"),
    (910, "cudaErrorGraphExecUpdateFailure\0", "graph exec update failure\0"),
    (911, "cudaErrorExternalDevice\0", "external device\0"),
    (912, "cudaErrorInvalidClusterSize\0", "invalid cluster size\0"),
    (913, "cudaErrorFunctionNotLoaded\0", "function not loaded\0"),
    (914, "cudaErrorInvalidResourceType\0", "invalid resource type\0"),
    (915, "cudaErrorInvalidResourceConfiguration\0", "invalid resource configuration\0"),
    (917, "cudaErrorStreamDetached\0", "stream detached\0"),
    (918, "cudaErrorGraphRecaptureFailure\0", "graph recapture failure\0"),
    (919, "cudaErrorFabricNotReady\0", "fabric not ready\0"),
    (999, "cudaErrorUnknown\0", "unknown error\0"),
    (10000, "cudaErrorApiFailureBase\0", "api failure base\0"),
];
