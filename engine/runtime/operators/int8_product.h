// 8-bit products from tiles: matrix products and convolutions. A convolution is
// a matrix product whose rows, one for each output pixel, are pieces of the
// image; they are read where they lie, or copied together where a pixel's
// channels do not fill whole groups.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PRODUCT_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PRODUCT_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/operators/int8_weights.h"
#include "engine/runtime/operators/next_weights.h"
#include "engine/runtime/reference/nn/window.h"
#include "engine/runtime/ukernels/int8/int8_functions.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// Where the rows come from. OWNERSHIP: borrowed.
struct Int8Image {
  const uint8_t* codes = nullptr;
  int64_t batch = 1;
  int64_t channels = 0;
  // Of one pixel for a matrix: its rows are then the batch.
  Window window;
  // The code of zero, also beyond 0..255; padding has the nearest code.
  int32_t zero = 0;
  // Not nullptr: floats, whose codes are made by *quantize (kQuantize), and
  // `codes` is nothing. For MultiplyStrips alone.
  const float* floats = nullptr;
  const Int8Stage* quantize = nullptr;

  int64_t rows() const { return batch * window.y.out * window.x.out; }
  int64_t depth() const { return window.y.size * window.x.size * channels; }
  // Whether rows lie one behind the other.
  bool is_matrix() const {
    const WindowAxis &y = window.y, &x = window.x;
    return y.size == 1 && x.size == 1 && y.stride == 1 && x.stride == 1 &&
           y.out == y.in && x.out == x.in;
  }
};

// A window of one pixel: the image is a matrix of rows x depth.
Window Int8MatrixWindow();

// Takes finished tiles. THREADS: called from many at once, each tile once.
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
  // Whether these rows and columns are finished by *finish alone; then a tile
  // function may do it, and Take is not called. The same for all of them.
  virtual bool FindFinish(int64_t row, int64_t column,
                          Int8Finish* finish) const {
    (void)row, (void)column, (void)finish;
    return false;
  }
  // `numbers.channel` is the first column.
  virtual void Take(const Int8Numbers& numbers, int64_t row) const = 0;
};

// The least and the greatest number of each column of a product; as many
// columns as whole tiles have.
struct Int8Extremes {
  std::vector<int32_t> low;
  std::vector<int32_t> high;
};

// Rows lie in lines, and a tile within one line. The rows of a line's tiles,
// the last one's excepted.
int64_t Int8TileRows(int64_t line);

// sum over k of (image[i, k] - image.zero) * (weights[k, j] - zero), wrapping
// in 32 bits, plus bias[j] where there is one; `zero` is what the weights say
// that it is. A depthwise convolution has a column for each channel.
struct Int8Product {
  const Int8Image& image;
  const Int8Weights& weights;
  Int8Functions functions;
  bool is_depthwise = false;
  // As many as there are columns; nullptr for none.
  const int32_t* bias = nullptr;
  // FindInt8Starts of all this; nullptr where it is to be found.
  const int32_t* starts = nullptr;
  // Weights are packed line by line of the window (Int8Weights::PackLines).
  // REQUIRES then: a convolution without dilation along x.
  bool is_lined = false;
  // What comes after the product; nullptr for what is not known.
  const FirstWeights* next = nullptr;

  // The products of one sum.
  int64_t depth() const {
    const Window& window = image.window;
    return is_depthwise ? window.y.size * window.x.size : image.depth();
  }
  int64_t line() const {
    return is_depthwise ? image.window.x.out : image.rows();
  }
};
// What a product reads first of weights.
FirstWeights FirstInt8Weights(const Int8Weights& weights);
// REQUIRES: weights are packed for this image, there are rows, and for a
// depthwise convolution image.zero is within 0..255.
// `extremes`: found too, unless nullptr.
void Multiply(const Int8Product& product, ThreadPool* pool,
              const Int8Sink& sink, Int8Extremes* extremes = nullptr);
void MultiplyDepthwise(const Int8Product& product, ThreadPool* pool,
                       const Int8Sink& sink, Int8Extremes* extremes);
// Windows over few channels, in lines of a strip or more.
// REQUIRES of MultiplyStrips: SuitsStrips, and the sink finds a finish.
bool SuitsStrips(const Int8Product& product);
void MultiplyStrips(const Int8Product& product, ThreadPool* pool,
                    const Int8Sink& sink);

// What each column's sums begin with, as many as whole tiles have columns. It
// changes with image.zero and the bias alone.
std::vector<int32_t> FindInt8Starts(const Int8Product& product);

// The product's starts, found here where it has none.
class Int8Starts {
 public:
  explicit Int8Starts(const Int8Product& product);
  Int8Starts(const Int8Starts&) = delete;
  Int8Starts& operator=(const Int8Starts&) = delete;

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

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PRODUCT_H_
