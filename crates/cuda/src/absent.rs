//! Functions that the library has by name and not in substance: programs that look every name up before they begin find them,
//! and get `CUDA_ERROR_NOT_SUPPORTED` when they call one. `cuGetProcAddress` does not know them.

use crate::{api::enter, code::Code};

/// Declares functions that take whatever they are given and refuse.
macro_rules! absent {
    ($($name:ident)*) => {
        $(
            #[allow(unsafe_code, non_snake_case)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> u32 {
                enter(stringify!($name), || Err(Code::NOT_SUPPORTED))
            }
        )*
    };
}

// Sparse arrays and planes.
#[rustfmt::skip]
absent! {
    cuArrayGetMemoryRequirements cuArrayGetPlane cuArrayGetSparseProperties cuExternalMemoryGetMappedMipmappedArray
    cuGraphicsResourceGetMappedMipmappedArray cuGraphicsSubResourceGetMappedArray cuMemMapArrayAsync
    cuMipmappedArrayGetMemoryRequirements cuMipmappedArrayGetSparseProperties cuSurfRefGetArray cuSurfRefSetArray
    cuTexRefGetArray cuTexRefGetMipmappedArray cuTexRefSetArray cuTexRefSetMipmappedArray
}

// Checkpoints of processes.
#[rustfmt::skip]
absent! {
    cuCheckpointOperationComplete cuCheckpointProcessCheckpoint cuCheckpointProcessGetRestoreThreadId
    cuCheckpointProcessGetState cuCheckpointProcessLock cuCheckpointProcessRestore cuCheckpointProcessUnlock
}

// Core dumps.
#[rustfmt::skip]
absent! {
    cuCoredumpDeregisterCompleteCallback cuCoredumpDeregisterStartCallback cuCoredumpGetAttribute
    cuCoredumpGetAttributeGlobal cuCoredumpRegisterCompleteCallback cuCoredumpRegisterStartCallback
    cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal
}

// Parts of a device.
#[rustfmt::skip]
absent! {
    cuCtxFromGreenCtx cuCtxGetDevResource cuDevResourceGenerateDesc cuDevSmResourceSplit cuDevSmResourceSplitByCount
    cuDeviceGetDevResource cuGreenCtxCreate cuGreenCtxDestroy cuGreenCtxGetDevResource cuGreenCtxGetId
    cuGreenCtxRecordEvent cuGreenCtxStreamCreate cuGreenCtxWaitEvent cuStreamGetDevResource cuStreamGetGreenCtx
}

// Others.
#[rustfmt::skip]
absent! {
    cuCtxGetExecAffinity cuDeviceGetHostAtomicCapabilities cuDeviceGetNvSciSyncAttributes
    cuDeviceGetP2PAtomicCapabilities cuDeviceRegisterAsyncNotification cuDeviceUnregisterAsyncNotification
    cuLaunchCooperativeKernelMultiDevice cuLibraryGetUnifiedFunction cuTensorMapEncodeIm2colWide cuTensorMapSetAllocationClass
}

// Memory and semaphores of other interfaces.
#[rustfmt::skip]
absent! {
    cuDestroyExternalMemory cuDestroyExternalSemaphore cuExternalMemoryGetMappedBuffer
    cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode
    cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphExecExternalSemaphoresWaitNodeSetParams
    cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
    cuGraphExternalSemaphoresWaitNodeGetParams cuGraphExternalSemaphoresWaitNodeSetParams cuImportExternalMemory
    cuImportExternalSemaphore cuSignalExternalSemaphoresAsync cuWaitExternalSemaphoresAsync
}

// Fabrics of several devices.
#[rustfmt::skip]
absent! {
    cuDeviceGetCliqueCount cuDeviceGetCliqueInfo cuDeviceGetFabricClusterUuid cuFabricCpyBatchAsync
    cuLogicalEndpointAddDevice cuLogicalEndpointBindAddr cuLogicalEndpointBindMem cuLogicalEndpointCreate
    cuLogicalEndpointDestroy cuLogicalEndpointExport cuLogicalEndpointGetLimits cuLogicalEndpointIdRelease
    cuLogicalEndpointIdReserve cuLogicalEndpointImport cuLogicalEndpointQuery cuLogicalEndpointUnbind
}

// Memory by location and by lists, and names of CUDA 2 whose newer forms are there.
#[rustfmt::skip]
absent! {
    cuArray3DCreate cuArray3DGetDescriptor cuArrayCreate cuArrayGetDescriptor cuIpcOpenMemHandle cuLinkAddData cuLinkAddFile
    cuLinkCreate cuMemAlloc cuMemAllocHost cuMemAllocPitch cuMemFree cuMemGetAddressRange cuMemHostGetDevicePointer
    cuModuleGetGlobal cuTexRefGetAddress cuTexRefSetAddress cuTexRefSetAddress2D
    cuDeviceGetGraphMemAttribute cuDeviceSetGraphMemAttribute cuGraphAddBatchMemOpNode cuGraphAddMemAllocNode
    cuGraphAddMemFreeNode cuGraphBatchMemOpNodeGetParams cuGraphBatchMemOpNodeSetParams
    cuGraphExecBatchMemOpNodeSetParams cuGraphMemAllocNodeGetParams cuGraphMemFreeNodeGetParams
    cuGraphMemcpyNodeGetParams cuGraphMemsetNodeGetParams     cuMemBatchDecompressAsync cuMemDiscardAndPrefetchBatchAsync cuMemDiscardBatchAsync
        cuMemGetDefaultMemPool cuMemGetHandleForAddressRange cuMemGetLocationInfo cuMemGetMemPool
    cuMemPoolExportPointer cuMemPoolExportToShareableHandle
    cuMemPoolImportFromShareableHandle cuMemPoolImportPointer cuMemPrefetchBatchAsync cuMemRangeGetAttribute
    cuMemRangeGetAttributes cuMemSetMemPool     cuMemcpy2D cuMemcpy2DAsync cuMemcpy2DUnaligned cuMemcpy3D cuMemcpy3DAsync cuMemcpy3DBatchAsync
    cuMemcpy3DBatchAsync_v2 cuMemcpy3DPeer cuMemcpy3DPeerAsync cuMemcpy3DWithAttributesAsync cuMemcpyAtoA cuMemcpyAtoD
    cuMemcpyAtoH cuMemcpyAtoHAsync cuMemcpyDtoA cuMemcpyDtoD cuMemcpyDtoDAsync cuMemcpyDtoH cuMemcpyDtoHAsync
    cuMemcpyHtoA cuMemcpyHtoAAsync cuMemcpyHtoD cuMemcpyHtoDAsync cuMemcpyWithAttributesAsync cuMemsetD16
    cuMemsetD2D16 cuMemsetD2D32 cuMemsetD2D8 cuMemsetD32 cuMemsetD8 cuMulticastBindMem cuMulticastBindMem_v2
    cuStreamBatchMemOp cuStreamBatchMemOp_v2
}

// Rarer functions on graphs.
#[rustfmt::skip]
absent! {
    cuGraphAddNode cuGraphAddNode_v2 cuGraphAddNode_v3 cuGraphChildGraphNodeGetGraph cuGraphConditionalHandleCreate
    cuGraphDebugDotPrint cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent cuGraphEventWaitNodeGetEvent
    cuGraphEventWaitNodeSetEvent cuGraphExecChildGraphNodeSetParams cuGraphExecEventRecordNodeSetEvent
    cuGraphExecEventWaitNodeSetEvent cuGraphExecGetId cuGraphExecNodeSetParams cuGraphGetId cuGraphHostNodeGetParams
    cuGraphKernelNodeCopyAttributes cuGraphKernelNodeGetAttribute cuGraphKernelNodeGetParams cuGraphKernelNodeGetParams_v2
    cuGraphKernelNodeSetAttribute cuGraphNodeFindInClone cuGraphNodeGetContainingGraph cuGraphNodeGetLocalId
    cuGraphNodeGetParams cuGraphNodeGetToolsId cuGraphNodeSetParams cuGraphNodeSetParams_v2
    cuStreamBeginRecaptureToGraph
}

// Graphics.
#[rustfmt::skip]
absent! {
    cuGraphicsMapResources cuGraphicsResourceGetMappedPointer cuGraphicsResourceGetMappedPointer_v2 cuGraphicsResourceSetMapFlags cuGraphicsResourceSetMapFlags_v2
    cuGraphicsUnmapResources cuGraphicsUnregisterResource
}

// Memory of other processes.
#[rustfmt::skip]
absent! {
    cuIpcCloseMemHandle cuIpcGetEventHandle cuIpcGetMemHandle cuIpcOpenEventHandle cuIpcOpenMemHandle_v2
}

// Logs.
#[rustfmt::skip]
absent! {
    cuLogsCurrent cuLogsDumpToFile cuLogsDumpToMemory cuLogsRegisterCallback cuLogsUnregisterCallback
}

// Texture and surface references, and views.
#[rustfmt::skip]
absent! {
    cuModuleGetSurfRef cuModuleGetTexRef cuParamSetTexRef cuTexObjectGetResourceViewDesc cuTexRefCreate
    cuTexRefDestroy cuTexRefGetAddressMode cuTexRefGetAddress_v2 cuTexRefGetBorderColor cuTexRefGetFilterMode
    cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias
    cuTexRefGetMipmapLevelClamp cuTexRefSetAddress2D_v2 cuTexRefSetAddress2D_v3 cuTexRefSetAddressMode
    cuTexRefSetAddress_v2 cuTexRefSetBorderColor cuTexRefSetFilterMode cuTexRefSetFlags cuTexRefSetFormat
    cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias cuTexRefSetMipmapLevelClamp
}

// Multicast objects.
#[rustfmt::skip]
absent! {
    cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindAddr_v2 cuMulticastCreate cuMulticastGetGranularity
    cuMulticastUnbind
}

// Rarer functions on streams.
#[rustfmt::skip]
absent! {
    cuStreamBeginCaptureToCig cuStreamEndCaptureToCig cuStreamUpdateCaptureDependencies
    cuStreamUpdateCaptureDependencies_v2 cuStreamWaitValue32 cuStreamWaitValue64 cuStreamWriteValue32
    cuStreamWriteValue64
}
