// Arrays, pitched memory, texture and surface objects; the structures that describe them differ between releases. Texels are read
// unfiltered, so results are exact.
#include <cstdio>
#include <cstring>

__global__ void turn(cudaTextureObject_t from, cudaSurfaceObject_t to, int w, int h) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < w && y < h) surf2Dwrite(tex2D<float>(from, x + 0.5f, y + 0.5f) * 2, to, (w - 1 - x) * int(sizeof(float)), h - 1 - y);
}

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, cudaGetErrorString(cudaGetLastError()));             \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

int main() {
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
