// The Mandelbrot set, as a picture in color and as text. Lanes leave the loop at different times.

__device__ int escape(float x, float y, int limit) {
  float u = 0, v = 0;
  int i = 0;
  while (i < limit && u * u + v * v < 16.0f) {
    float t = u * u - v * v + x;
    v = 2 * u * v + y;
    u = t;
    i++;
  }
  return i;
}

// rgb[height][width][3]: a smooth wheel of colors, black inside the set.
extern "C" __global__ void picture(unsigned char *rgb, int width, int height, int limit) {
  int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height) return;
  float scale = 3.0f / width;
  int i = escape(-2.2f + px * scale, (py - height / 2) * scale, limit);
  unsigned char *p = rgb + 3 * (py * width + px);
  bool inside = i == limit;
  for (int c = 0; c < 3; c++) {
    int phase = (i * 9 + c * 85) & 255;
    int ramp = phase < 128 ? 2 * phase : 510 - 2 * phase;
    p[c] = inside ? 0 : ramp;
  }
}

// chars[height][width + 1]: a character for each point, and a line feed at the end of each row.
extern "C" __global__ void text(unsigned char *chars, int width, int height) {
  int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px > width || py >= height) return;
  const char shades[] = " .,:;+*oO%#@";
  int i = escape(-2.2f + px * (3.0f / width), (py - height / 2) * (2.4f / height), 96);
  chars[py * (width + 1) + px] = px == width ? '\n' : i == 96 ? '@' : shades[i < 11 ? i : 10];
}
