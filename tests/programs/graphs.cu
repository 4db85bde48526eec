// Graphs, captured and built, in the forms that each release of the runtime API has. Every result is exact arithmetic.
#include <cstdio>

__global__ void add(int *x, int by) { x[threadIdx.x] += by; }

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, cudaGetErrorString(cudaGetLastError()));             \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

int main() {
    int *x, host[32];
    OK(cudaMalloc(&x, sizeof host));
    OK(cudaMemset(x, 0, sizeof host));
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<1, 32, 0, stream>>>(x, 1);
    add<<<1, 32, 0, stream>>>(x, 2);
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
#if CUDART_VERSION >= 13000
    OK(cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr));
#elif CUDART_VERSION >= 12000
    OK(cudaStreamGetCaptureInfo_v2(stream, &status, &id));
#else
    OK(cudaStreamGetCaptureInfo(stream, &status, &id));
#endif
    CHECK(status == cudaStreamCaptureStatusActive && id != 0);
    cudaGraph_t graph;
    OK(cudaStreamEndCapture(stream, &graph));
    size_t count = 0, edges = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &count));
    CHECK(count == 2);
#if CUDART_VERSION >= 13000
    OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
#else
    OK(cudaGraphGetEdges(graph, nullptr, nullptr, &edges));
#endif
    CHECK(edges == 1);

    // A node of its own behind what was captured.
    cudaGraphNode_t nodes[2], last;
    OK(cudaGraphGetNodes(graph, nodes, &count));
    int by = 10;
    void *arguments[] = {&x, &by};
    cudaKernelNodeParams params = {};
    params.func = reinterpret_cast<void *>(add);
    params.gridDim = dim3(1);
    params.blockDim = dim3(32);
    params.kernelParams = arguments;
    OK(cudaGraphAddKernelNode(&last, graph, nullptr, 0, &params));
#if CUDART_VERSION >= 13000
    OK(cudaGraphAddDependencies(graph, &nodes[1], &last, nullptr, 1));
#else
    OK(cudaGraphAddDependencies(graph, &nodes[1], &last, 1));
#endif

    cudaGraphExec_t exec;
#if CUDART_VERSION >= 12000
    OK(cudaGraphInstantiate(&exec, graph, 0));
#else
    OK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
#endif
    for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) CHECK(host[i] == 3 * 13);

    by = 100;
    OK(cudaGraphExecKernelNodeSetParams(exec, last, &params));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) CHECK(host[i] == 3 * 13 + 103);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    puts("ok");
    return 0;
}
