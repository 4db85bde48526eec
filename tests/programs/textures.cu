// Arrays, pitched memory, texture and surface objects; the structures that describe them differ between releases. Texels are read
// unfiltered, so results are exact.
#include <cstdio>
#include <cstring>

__global__ void turn(cudaTextureObject_t from, cudaSurfaceObject_t to, int w, int h) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < w && y < h) surf2Dwrite(tex2D<float>(from, x + 0.5f, y + 0.5f) * 2, to, (w - 1 - x) * int(sizeof(float)), h - 1 - y);
}

__global__ void texel(cudaTextureObject_t from, float *to, int layer) { *to = tex2DLayered<float>(from, 0.5f, 0.5f, layer); }
__global__ void word(cudaTextureObject_t from, float *to) { *to = __uint_as_float(tex2DLayered<unsigned>(from, 0.5f, 0.5f, 0)); }

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, cudaGetErrorString(cudaGetLastError()));             \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

// A texture of a level of a mipmapped array shows that level, and views show some of the levels and layers, in other formats of
// the same size (cuTexObjectCreate).
static int parts() {
    const int w = 4, layers = 3, levels = 2;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t whole;
    OK(cudaMallocMipmappedArray(&whole, &format, make_cudaExtent(w, w, layers), levels, cudaArrayLayered));
    cudaArray_t level[levels];
    for (int i = 0; i < levels; i++) {
        const int n = w >> i;
        float values[layers][w * w];
        for (int z = 0; z < layers; z++)
            for (int k = 0; k < n * n; k++) values[0][z * n * n + k] = float(10 * i + z);
        OK(cudaGetMipmappedArrayLevel(&level[i], whole, i));
        cudaMemcpy3DParms copy = {};
        copy.srcPtr = make_cudaPitchedPtr(values, n * sizeof(float), n, n);
        copy.dstArray = level[i];
        copy.extent = make_cudaExtent(n, n, layers);
        copy.kind = cudaMemcpyHostToDevice;
        OK(cudaMemcpy3D(&copy));
    }
    float *seen, value;
    OK(cudaMalloc(&seen, sizeof *seen));
    cudaResourceDesc one = {}, all = {};
    one.resType = cudaResourceTypeArray;
    one.res.array.array = level[1];
    all.resType = cudaResourceTypeMipmappedArray;
    all.res.mipmap.mipmap = whole;
    cudaTextureDesc options = {};
    cudaTextureObject_t texture;
    OK(cudaCreateTextureObject(&texture, &one, &options, nullptr));
    texel<<<1, 1>>>(texture, seen, 2);
    OK(cudaMemcpy(&value, seen, sizeof value, cudaMemcpyDeviceToHost));
    CHECK(value == 12);

    cudaResourceViewDesc view = {};
    view.format = cudaResViewFormatFloat1;
    view.width = view.height = w;
    view.depth = layers;
    view.firstMipmapLevel = view.lastMipmapLevel = 1;
    view.firstLayer = 1;
    view.lastLayer = 2;
    OK(cudaCreateTextureObject(&texture, &all, &options, &view));
    texel<<<1, 1>>>(texture, seen, 0);
    OK(cudaMemcpy(&value, seen, sizeof value, cudaMemcpyDeviceToHost));
    CHECK(value == 11);
    view.format = cudaResViewFormatUnsignedInt1;
    OK(cudaCreateTextureObject(&texture, &all, &options, &view));
    word<<<1, 1>>>(texture, seen);
    OK(cudaMemcpy(&value, seen, sizeof value, cudaMemcpyDeviceToHost));
    CHECK(value == 11);
    view.lastLayer = 3;
    CHECK(cudaCreateTextureObject(&texture, &all, &options, &view) == cudaErrorInvalidValue);
    cudaGetLastError();
    return 0;
}

int main() {
    if (parts()) return 1;
    const int w = 20, h = 6;
    float host[h][w], back[h][w];
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) host[y][x] = float(100 * y + x);
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t to;
    OK(cudaMallocArray(&to, &format, w, h, cudaArraySurfaceLoadStore));
    float *linear;
    size_t pitch;
    OK(cudaMallocPitch(&linear, &pitch, w * sizeof(float), h));
    OK(cudaMemcpy2D(linear, pitch, host, sizeof host[0], sizeof host[0], h, cudaMemcpyHostToDevice));

    struct { cudaResourceDesc of; unsigned char guard[16]; } resource;
    memset(&resource, 0, sizeof resource);
    resource.of.resType = cudaResourceTypePitch2D;
    resource.of.res.pitch2D.devPtr = linear;
    resource.of.res.pitch2D.desc = format;
    resource.of.res.pitch2D.width = w;
    resource.of.res.pitch2D.height = h;
    resource.of.res.pitch2D.pitchInBytes = pitch;
    struct { cudaTextureDesc of; unsigned char guard[16]; } options;
    memset(&options, 0, sizeof options);
    options.of.filterMode = cudaFilterModePoint;
    options.of.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    OK(cudaCreateTextureObject(&texture, &resource.of, &options.of, nullptr));
    cudaResourceDesc surface_of = {};
    surface_of.resType = cudaResourceTypeArray;
    surface_of.res.array.array = to;
    cudaSurfaceObject_t surface;
    OK(cudaCreateSurfaceObject(&surface, &surface_of));

    turn<<<h, 32>>>(texture, surface, w, h);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy2DFromArray(back, sizeof back[0], to, 0, 0, sizeof back[0], h, cudaMemcpyDeviceToHost));
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) CHECK(back[y][x] == 2 * host[h - 1 - y][w - 1 - x]);

    memset(&resource, 0xa5, sizeof resource);
    OK(cudaGetTextureObjectResourceDesc(&resource.of, texture));
    CHECK(resource.guard[0] == 0xa5 && resource.of.resType == cudaResourceTypePitch2D);
    CHECK(resource.of.res.pitch2D.devPtr == linear && resource.of.res.pitch2D.pitchInBytes == pitch);
    memset(&options, 0xa5, sizeof options);
    OK(cudaGetTextureObjectTextureDesc(&options.of, texture));
    CHECK(options.guard[0] == 0xa5 && options.of.filterMode == cudaFilterModePoint && options.of.normalizedCoords == 0);
    OK(cudaDestroyTextureObject(texture));

    // A view that shows the array as it is.
    cudaResourceViewDesc view = {}, seen;
    view.format = cudaResViewFormatFloat1;
    view.width = w;
    view.height = h;
    options.of = cudaTextureDesc();
    OK(cudaCreateTextureObject(&texture, &surface_of, &options.of, &view));
    OK(cudaGetTextureObjectResourceViewDesc(&seen, texture));
    CHECK(seen.format == view.format && seen.width == view.width && seen.height == view.height && seen.depth == 0);
    OK(cudaDestroyTextureObject(texture));
    OK(cudaDestroySurfaceObject(surface));
    OK(cudaFreeArray(to));
    puts("ok");
    return 0;
}
