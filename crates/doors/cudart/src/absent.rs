//! Functions that exist by name only: programs find every symbol that they were linked with, and a call returns
//! `cudaErrorNotSupported`.

use crate::{api::enter, error::Code};

/// Declares functions that ignore their arguments and return an error, also in their forms for the thread's default
/// stream.
macro_rules! absent {
    ($($name:ident $(+ $ending:ident)?)*) => {
        $(
            #[allow(unsafe_code, non_snake_case)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> u32 {
                enter(stringify!($name), || Err(Code::NOT_SUPPORTED))
            }
            $($crate::api::per_thread! { $name $ending () })?
        )*
    };
}

// Graphics.
#[rustfmt::skip]
absent! {
    cudaEGLStreamConsumerAcquireFrame cudaEGLStreamConsumerConnect cudaEGLStreamConsumerConnectWithFlags
    cudaEGLStreamConsumerDisconnect cudaEGLStreamConsumerReleaseFrame cudaEGLStreamProducerConnect
    cudaEGLStreamProducerDisconnect cudaEGLStreamProducerPresentFrame cudaEGLStreamProducerReturnFrame
    cudaEventCreateFromEGLSync cudaGLGetDevices cudaGLMapBufferObject cudaGLMapBufferObjectAsync
    cudaGLRegisterBufferObject cudaGLSetBufferObjectMapFlags cudaGLSetGLDevice cudaGLUnmapBufferObject
    cudaGLUnmapBufferObjectAsync cudaGLUnregisterBufferObject cudaGraphicsEGLRegisterImage cudaGraphicsGLRegisterBuffer
    cudaGraphicsGLRegisterImage cudaGraphicsMapResources cudaGraphicsResourceGetMappedEglFrame
    cudaGraphicsResourceGetMappedMipmappedArray cudaGraphicsResourceGetMappedPointer cudaGraphicsResourceSetMapFlags
    cudaGraphicsSubResourceGetMappedArray cudaGraphicsUnmapResources cudaGraphicsUnregisterResource
    cudaGraphicsVDPAURegisterOutputSurface cudaGraphicsVDPAURegisterVideoSurface cudaVDPAUGetDevice
    cudaVDPAUSetVDPAUDevice
}

// Memory and semaphores of other interfaces.
#[rustfmt::skip]
absent! {
    cudaDestroyExternalMemory cudaDestroyExternalSemaphore cudaDeviceGetNvSciSyncAttributes
    cudaExternalMemoryGetMappedBuffer cudaExternalMemoryGetMappedMipmappedArray cudaGraphAddExternalSemaphoresSignalNode
    cudaGraphAddExternalSemaphoresWaitNode cudaGraphExecExternalSemaphoresSignalNodeSetParams
    cudaGraphExecExternalSemaphoresWaitNodeSetParams cudaGraphExternalSemaphoresSignalNodeGetParams
    cudaGraphExternalSemaphoresSignalNodeSetParams cudaGraphExternalSemaphoresWaitNodeGetParams
    cudaGraphExternalSemaphoresWaitNodeSetParams cudaImportExternalMemory cudaImportExternalSemaphore
    cudaSignalExternalSemaphoresAsync + ptsz cudaWaitExternalSemaphoresAsync + ptsz
}

// Grids of device code.
#[rustfmt::skip]
absent! { cudaSubgridCreate cudaSubgridWorkerGridCreate cudaSubgridWorksetCreate }

// Sparse arrays and planes.
#[rustfmt::skip]
absent! {
    cudaArrayGetMemoryRequirements cudaArrayGetPlane cudaArrayGetSparseProperties
    cudaMipmappedArrayGetMemoryRequirements cudaMipmappedArrayGetSparseProperties
}

// Others.
#[rustfmt::skip]
absent! {
    __cudaGetProcAddress __cudaRegisterHostVar __cudaRegisterUnifiedTable cudaDeviceFlushGPUDirectRDMAWrites
    cudaDeviceGetHostAtomicCapabilities cudaDeviceGetP2PAtomicCapabilities cudaDeviceRegisterAsyncNotification
    cudaDeviceUnregisterAsyncNotification cudaLibraryGetUnifiedFunction cudaMemGetLocationInfo
    cudaStreamBeginRecaptureToGraph + ptsz
}

// Removed in CUDA 13.
#[cfg(not(cuda13))]
#[rustfmt::skip]
absent! { cudaLaunchCooperativeKernelMultiDevice }
#[cfg(not(cuda13))]
#[rustfmt::skip]
absent! { cudaSignalExternalSemaphoresAsync_v2 + ptsz cudaWaitExternalSemaphoresAsync_v2 + ptsz }
