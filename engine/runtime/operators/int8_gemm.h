// Drives the int8 micro-kernels: matrix products and convolutions. A
// convolution is a GEMM with one row for each output pixel, which the kernel
// reads through an indirection buffer (int8_indirection.h).

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_GEMM_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_GEMM_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/operators/int8_weights.h"
#include "engine/runtime/operators/next_weights.h"
#include "engine/runtime/reference/nn/window.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// The quantized activations. OWNERSHIP: borrowed.
struct Int8Activations {
  const uint8_t* values = nullptr;
  int64_t batch = 1;
  int64_t channels = 0;
  // Of one pixel for a matrix: its rows are then the batch.
  Window window;
  // Also beyond 0..255; padding has the nearest value.
  int32_t zero_point = 0;

  int64_t rows() const { return batch * window.y.out * window.x.out; }
  int64_t depth() const { return window.y.size * window.x.size * channels; }
  // Whether rows lie one behind the other.
  bool is_matrix() const {
    const WindowAxis &y = window.y, &x = window.x;
    return y.size == 1 && x.size == 1 && y.stride == 1 && x.stride == 1 &&
           y.out == y.in && x.out == x.in;
  }
};

// A window of one pixel: the input is a matrix of rows x depth.
Window Int8MatrixWindow();

// Takes the tiles. THREADS: called from many at once, each tile once.
class Int8Sink {
 public:
  virtual ~Int8Sink() = default;
  // Where the tile of these rows and columns is to be made; `scratch` has room
  // for one.
  virtual int32_t* PlaceOf(int64_t row, int rows, int64_t column,
                           int32_t* scratch) const {
    (void)row, (void)rows, (void)column;
    return scratch;
  }
  // Whether *epilogue is all that these rows and columns need; then a
  // micro-kernel may run it, and Take is not called. The same for all of them.
  virtual bool FindEpilogue(int64_t row, int64_t column,
                            Int8Epilogue* epilogue) const {
    (void)row, (void)column, (void)epilogue;
    return false;
  }
  // `tile.channel` is the first column.
  virtual void Take(const Int8Accumulators& tile, int64_t row) const = 0;
};

// The least and the greatest accumulator of each column; as many columns as
// whole panels have.
struct Int8Extremes {
  std::vector<int32_t> low;
  std::vector<int32_t> high;
};

// The rows of tiles of at most mr that `rows` rows are cut into as equally as
// can be, the last one excepted.
int64_t TileRows(int64_t rows, int mr);

// sum over k of (input[i, k] - input.zero_point) *
//   (weights[k, j] - weights.zero_point()),
// wrapping in 32 bits, plus bias[j] where there is one. A depthwise convolution
// has a column for each channel.
struct Int8Gemm {
  const Int8Activations& input;
  const Int8Weights& weights;
  Int8Kernels kernels;
  bool is_depthwise = false;
  // As many as there are columns; nullptr for none.
  const int32_t* bias = nullptr;
  // FindAccumulatorInit of all this; nullptr where it is to be found.
  const int32_t* init = nullptr;
  // Weights are packed row by row of the window (Int8Weights::PackRows).
  // REQUIRES then: a convolution without dilation along x.
  bool is_by_row = false;
  // The weights that are read next; nullptr where they are not known.
  const FirstWeights* next = nullptr;

  // What multiplies: `kernels.matrix` where that takes less time (int8_cost.h).
  const MicroKernel& kernel() const;
  // Whether a kernel that reads strided rows does so here: of a convolution
  // whose tiles are cut at the rows of the output. What is padded is to be in
  // the image then (int8_padded_image.h).
  bool RunsAtStride(const MicroKernel& by) const;
  // The products of one sum.
  int64_t depth() const {
    const Window& window = input.window;
    return is_depthwise ? window.y.size * window.x.size : input.depth();
  }
  // Tiles do not reach beyond a run of so many rows, and have this many.
  int64_t run() const {
    return is_depthwise || RunsAtStride(kernel()) ? input.window.x.out
                                                  : input.rows();
  }
  int64_t tile_rows() const { return TileRows(run(), kernel().mr); }
};
// What a GEMM reads first of weights.
FirstWeights FirstInt8Weights(const Int8Weights& weights);
// REQUIRES: weights are packed for this input and these kernels, there are
// rows, and for a depthwise convolution input.zero_point is within 0..255.
// `extremes`: found too, unless nullptr.
void Multiply(const Int8Gemm& gemm, ThreadPool* pool, const Int8Sink& sink,
              Int8Extremes* extremes = nullptr);
void MultiplyDepthwise(const Int8Gemm& gemm, ThreadPool* pool,
                       const Int8Sink& sink, Int8Extremes* extremes);
// Windows over few channels, by the row kernel.
// REQUIRES of MultiplyRows: SuitsRowKernel, and the sink finds an epilogue.
bool SuitsRowKernel(const Int8Gemm& gemm);
void MultiplyRows(const Int8Gemm& gemm, ThreadPool* pool, const Int8Sink& sink);
// The same on the caller's thread alone, for an input that is part of a larger
// one: the GEMM's row 0 is the sink's row `first`. `ahead` is prefetched
// meanwhile.
void MultiplyRowsAlone(const Int8Gemm& gemm, int64_t first,
                       FirstWeights::Place ahead, const Int8Sink& sink);
// The rows of the output image that are worth another thread.
int64_t RowsForThread(const Int8Gemm& gemm);

// The accumulator init of each column, as many as whole panels have: the bias
// and the correction for the zero points. It changes with input.zero_point and
// the bias alone.
std::vector<int32_t> FindAccumulatorInit(const Int8Gemm& gemm);

// gemm.init, found here where it has none.
class AccumulatorInit {
 public:
  explicit AccumulatorInit(const Int8Gemm& gemm);
  AccumulatorInit(const AccumulatorInit&) = delete;
  AccumulatorInit& operator=(const AccumulatorInit&) = delete;

  const int32_t* data() const { return data_; }

 private:
  std::vector<int32_t> found_;
  const int32_t* data_;
};

// Runs work(begin, end, part) over [0, count) on the pool's threads and joins
// the parts' extremes; `part` is nullptr when `extremes` is.
void ForInt8Ranges(
    ThreadPool* pool, int64_t count, int64_t grain, int64_t columns,
    Int8Extremes* extremes,
    absl::FunctionRef<void(int64_t, int64_t, Int8Extremes*)> work);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_GEMM_H_
