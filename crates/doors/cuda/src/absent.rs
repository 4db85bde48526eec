//! Functions that exist by name only: programs that look up every name at start find them, and a call returns
//! `CUDA_ERROR_NOT_SUPPORTED`. If the program fails, the summary at its end names those that were called.

use crate::{
    api::{Entry, enter},
    code::Code,
};

/// Declares functions that ignore their arguments and return an error, also in their forms for the thread's default
/// stream, and a list of them. Lookups prefer every other form of a name: these count as older than all.
macro_rules! absent {
    ($list:ident: $($name:ident $(+ $ending:ident)?)*) => {
        const $list: &[Entry] = &[
            $(
                Entry { name: stringify!($name), since: 0, address: || $name as *const () },
                $(
                    Entry {
                        name: concat!(stringify!($name), "_", stringify!($ending)),
                        since: 0,
                        address: || $name as *const (),
                    },
                )?
            )*
        ];

        $(
            #[allow(unsafe_code, non_snake_case)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> u32 {
                enter(stringify!($name), || {
                    crate::process::account::unsupported(stringify!($name));
                    Err(Code::NOT_SUPPORTED)
                })
            }
            $(
                const _: () = {
                    #[allow(unsafe_code)]
                    #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($ending)))]
                    extern "C" fn per_thread() -> u32 {
                        $name()
                    }
                };
            )?
        )*
    };
}

/// The lists of this file.
#[rustfmt::skip]
pub const LISTS: [&[Entry]; 10] = [
    PLANES, CHECKPOINTS, CORE_DUMPS, OTHERS, INTEROPERATION, FABRICS, OLDER, GRAPHICS, MULTICAST, STREAMS,
];

// Sparse arrays and planes.
#[rustfmt::skip]
absent! {
    PLANES:
    cuArrayGetMemoryRequirements cuArrayGetPlane cuArrayGetSparseProperties cuExternalMemoryGetMappedMipmappedArray
    cuGraphicsResourceGetMappedMipmappedArray cuGraphicsSubResourceGetMappedArray cuMemMapArrayAsync + ptsz
    cuMipmappedArrayGetMemoryRequirements cuMipmappedArrayGetSparseProperties
}

// Checkpoints of processes.
#[rustfmt::skip]
absent! {
    CHECKPOINTS:
    cuCheckpointOperationComplete cuCheckpointProcessCheckpoint cuCheckpointProcessGetRestoreThreadId
    cuCheckpointProcessGetState cuCheckpointProcessLock cuCheckpointProcessRestore cuCheckpointProcessUnlock
}

// Core dumps.
#[rustfmt::skip]
absent! {
    CORE_DUMPS:
    cuCoredumpDeregisterCompleteCallback cuCoredumpDeregisterStartCallback cuCoredumpGetAttribute
    cuCoredumpGetAttributeGlobal cuCoredumpRegisterCompleteCallback cuCoredumpRegisterStartCallback
    cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal
}

// Others.
#[rustfmt::skip]
absent! {
    OTHERS:
    cuCtxGetExecAffinity cuDeviceGetHostAtomicCapabilities cuDeviceGetNvSciSyncAttributes
    cuDeviceGetP2PAtomicCapabilities cuDeviceRegisterAsyncNotification cuDeviceUnregisterAsyncNotification
    cuLaunchCooperativeKernelMultiDevice cuLibraryGetUnifiedFunction cuTensorMapEncodeIm2colWide
    cuTensorMapSetAllocationClass
}

// Memory and semaphores of other interfaces.
#[rustfmt::skip]
absent! {
    INTEROPERATION:
    cuDestroyExternalMemory cuDestroyExternalSemaphore cuExternalMemoryGetMappedBuffer
    cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode
    cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphExecExternalSemaphoresWaitNodeSetParams
    cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams cuImportExternalMemory
    cuImportExternalSemaphore cuSignalExternalSemaphoresAsync + ptsz cuWaitExternalSemaphoresAsync + ptsz
}

// Fabrics of several devices.
#[rustfmt::skip]
absent! {
    FABRICS:
    cuDeviceGetCliqueCount cuDeviceGetCliqueInfo cuDeviceGetFabricClusterUuid cuFabricCpyBatchAsync + ptsz
    cuLogicalEndpointAddDevice cuLogicalEndpointBindAddr cuLogicalEndpointBindMem cuLogicalEndpointCreate
    cuLogicalEndpointDestroy cuLogicalEndpointExport cuLogicalEndpointGetLimits cuLogicalEndpointIdRelease
    cuLogicalEndpointIdReserve cuLogicalEndpointImport cuLogicalEndpointQuery cuLogicalEndpointUnbind
}

// Memory by location and by lists, and names of CUDA 2 whose newer forms are there.
#[rustfmt::skip]
absent! {
    OLDER:
    cuArray3DCreate cuArray3DGetDescriptor cuArrayCreate cuArrayGetDescriptor cuLinkAddData cuLinkAddFile cuLinkCreate
    cuMemAlloc cuMemAllocHost cuMemAllocPitch cuMemFree cuMemGetAddressRange cuMemHostGetDevicePointer cuModuleGetGlobal
    cuTexRefGetAddress cuTexRefSetAddress cuTexRefSetAddress2D 
    cuMemBatchDecompressAsync + ptsz
    cuMemGetHandleForAddressRange cuMemGetLocationInfo
    cuMemcpy2D cuMemcpy2DAsync cuMemcpy2DUnaligned cuMemcpy3D
    cuMemcpy3DAsync cuMemcpyAtoA cuMemcpyAtoD cuMemcpyAtoH cuMemcpyAtoHAsync cuMemcpyDtoA cuMemcpyDtoD cuMemcpyDtoDAsync
    cuMemcpyDtoH cuMemcpyDtoHAsync cuMemcpyHtoA cuMemcpyHtoAAsync cuMemcpyHtoD cuMemcpyHtoDAsync cuMemsetD16
    cuMemsetD2D16 cuMemsetD2D32 cuMemsetD2D8 cuMemsetD32 cuMemsetD8 cuMulticastBindMem cuMulticastBindMem_v2
    
}

// Graphics.
#[rustfmt::skip]
absent! {
    GRAPHICS:
    cuGraphicsGLRegisterBuffer cuGraphicsGLRegisterImage
    cuGraphicsMapResources + ptsz cuGraphicsResourceGetMappedPointer cuGraphicsResourceGetMappedPointer_v2
    cuGraphicsResourceSetMapFlags cuGraphicsResourceSetMapFlags_v2 cuGraphicsUnmapResources + ptsz
    cuGraphicsUnregisterResource
}

// Multicast objects.
#[rustfmt::skip]
absent! {
    MULTICAST:
    cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindAddr_v2 cuMulticastCreate cuMulticastGetGranularity
    cuMulticastUnbind
}

// Rarer functions on streams.
#[rustfmt::skip]
absent! {
    STREAMS:
    cuStreamBeginCaptureToCig + ptsz cuStreamBeginRecaptureToGraph + ptsz cuStreamEndCaptureToCig + ptsz
}
