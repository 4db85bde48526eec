// Kernel nodes of a graph that kernels change: parameters, grid, and whether they run (`cudaGraphKernelNodeUpdatesApply`). The results follow from
// the runtime API's description of these functions, and of `cudaLaunchAttributeDeviceUpdatableKernelNode`.
#include <cstdio>

static int failures = 0;
#define CHECK(what) if (!(what)) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); failures++; }
#define OK(call) CHECK((call) == cudaSuccess)

constexpr size_t VALUE = 8; // offset of the second parameter of `add`

__global__ void add(int *to, int value) { atomicAdd(to, value); }

__global__ void change(cudaGraphDeviceNode_t node, int *errors, int round)
{
    const int value = 10 + round;
    errors[0] = cudaGraphKernelNodeSetParam(node, VALUE, value);
    errors[1] = cudaGraphKernelNodeSetGridDim(node, dim3(round, 2, 1));
    errors[2] = cudaGraphKernelNodeSetEnabled(node, round != 2);
    errors[3] = cudaGraphKernelNodeSetParam(node, 1000, value);
    errors[4] = cudaGraphKernelNodeSetGridDim(node, dim3(0, 1, 1));
    errors[5] = cudaGraphKernelNodeSetEnabled((cudaGraphDeviceNode_t)(size_t)12345, true);
}

__global__ void change_all(cudaGraphDeviceNode_t first, cudaGraphDeviceNode_t second, int *errors)
{
    const int value = 1000;
    // The structure has no constructor.
    alignas(cudaGraphKernelNodeUpdate) unsigned char bytes[3 * sizeof(cudaGraphKernelNodeUpdate)] = {};
    cudaGraphKernelNodeUpdate *updates = (cudaGraphKernelNodeUpdate *)bytes;
    updates[0].node = updates[1].node = first;
    updates[2].node = second;
    updates[0].field = cudaGraphKernelNodeFieldParam;
    updates[0].updateData.param.pValue = &value;
    updates[0].updateData.param.offset = VALUE;
    updates[0].updateData.param.size = sizeof value;
    updates[1].field = cudaGraphKernelNodeFieldGridDim;
    updates[1].updateData.gridDim = dim3(3, 1, 1);
    updates[2].field = cudaGraphKernelNodeFieldEnabled;
    updates[2].updateData.isEnabled = 0;
    errors[0] = cudaGraphKernelNodeUpdatesApply(updates, 3);
    updates[1].field = cudaGraphKernelNodeFieldInvalid;
    errors[1] = cudaGraphKernelNodeUpdatesApply(updates, 2);
}

template <typename... T>
static cudaGraphNode_t node_of(cudaGraph_t graph, const cudaGraphNode_t *after, void (*kernel)(T...), T... values)
{
    void *arguments[] = {&values...};
    cudaKernelNodeParams params = {};
    params.func = (void *)kernel;
    params.gridDim = params.blockDim = dim3(1, 1, 1);
    params.kernelParams = arguments;
    cudaGraphNode_t node;
    OK(cudaGraphAddKernelNode(&node, graph, after, after != nullptr, &params));
    return node;
}

static cudaGraphDeviceNode_t make_updatable(cudaGraphNode_t node)
{
    cudaLaunchAttributeValue value = {};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    OK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
    OK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
    const cudaGraphDeviceNode_t handle = value.deviceUpdatableKernelNode.devNode;
    CHECK(handle != nullptr);
    value.deviceUpdatableKernelNode.deviceUpdatable = 0;
    CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &value) == cudaErrorInvalidValue);
    return handle;
}

// A kernel changes the node after it, in each launch.
static void built(int *sum, int *errors)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec, second;
    OK(cudaGraphCreate(&graph, 0));
    const cudaGraphNode_t added = node_of(graph, nullptr, add, sum, 1);
    const cudaGraphDeviceNode_t handle = make_updatable(added);
    const cudaGraphNode_t changing = node_of(graph, nullptr, change, handle, errors, 1);
    OK(cudaGraphAddDependencies(graph, &changing, &added, nullptr, 1));
    CHECK(cudaGraphDestroyNode(added) == cudaErrorInvalidValue);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphInstantiate(&second, graph, 0) == cudaErrorInvalidValue);
    for (int round = 1; round <= 3; round++) {
        void *arguments[] = {(void *)&handle, &errors, &round};
        cudaKernelNodeParams params = {};
        params.func = (void *)change;
        params.gridDim = params.blockDim = dim3(1, 1, 1);
        params.kernelParams = arguments;
        OK(cudaGraphExecKernelNodeSetParams(exec, changing, &params));
        OK(cudaGraphUpload(exec, 0));
        *sum = 0;
        OK(cudaGraphLaunch(exec, 0));
        OK(cudaDeviceSynchronize());
        CHECK(*sum == (round == 2 ? 0 : 2 * round * (10 + round)));
        for (int i = 0; i < 3; i++)
            CHECK(errors[i] == cudaSuccess);
        for (int i = 3; i < 6; i++)
            CHECK(errors[i] == cudaErrorInvalidValue);
    }
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
}

// Captured launches become such nodes; a kernel outside of the graph changes them for its next launches, when the graph itself is gone.
static void captured(int *sum, int *errors)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphDeviceNode_t handles[2];
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    attribute.id = cudaLaunchAttributeDeviceUpdatableKernelNode;
    attribute.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
    config.gridDim = config.blockDim = dim3(1, 1, 1);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, add, sum, 1) != cudaSuccess);
    cudaGetLastError();
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 2; i++) {
        OK(cudaLaunchKernelEx(&config, add, sum, 5 + 10 * i));
        handles[i] = attribute.val.deviceUpdatableKernelNode.devNode;
    }
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphDestroy(graph));
    *sum = 0;
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(*sum == 20);
    change_all<<<1, 1, 0, stream>>>(handles[0], handles[1], errors);
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(*sum == 20 + 3 * 1000);
    CHECK(errors[0] == cudaSuccess && errors[1] == cudaErrorInvalidValue);
    OK(cudaGraphExecDestroy(exec));
    change_all<<<1, 1, 0, stream>>>(handles[0], handles[1], errors);
    OK(cudaStreamSynchronize(stream));
    CHECK(errors[0] == cudaErrorInvalidValue);
    OK(cudaStreamDestroy(stream));
}

int main()
{
    int *sum, *errors;
    OK(cudaMallocManaged(&sum, sizeof(int)));
    OK(cudaMallocManaged(&errors, 6 * sizeof(int)));
    built(sum, errors);
    captured(sum, errors);
    if (!failures)
        std::puts("ok");
    return failures != 0;
}
