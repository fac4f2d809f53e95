// Two kernels as one step, a band of rows at a time. A producer makes some rows
// of an image, a consumer reads them while they are still in the cache, and the
// tensor between the two is never written as a whole.
//
// The driver (row_bands.cc) shares out the consumer's rows over threads. Each
// thread walks its rows in bands: it keeps the rows of the last band that the
// next one sees as well, has the producer make the others, and hands all of
// them to the consumer. Producer and consumer know nothing of one another.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_ROW_BANDS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_ROW_BANDS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/operators/next_weights.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

// What the elements of rows are.
struct RowElements {
  DataType dtype = tensorflow::DT_FLOAT;
  // What quantized values stand for.
  Range range;
};

// An image [batch, height, width, channels]. Rows are counted over batch and
// height.
struct RowImage {
  int64_t batch = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  int64_t rows() const { return batch * height; }
  // UNITS: elements.
  int64_t row_size() const { return width * channels; }
};

// A role (kernel_role.h): a kernel with one input that can make some rows of
// output 0 alone.
class RowProducer {
 public:
  // One run's rows. THREADS: any number at once.
  class Rows {
   public:
    virtual ~Rows() = default;
    // Makes rows [begin, end), one behind the other from `out` on. The last
    // ones fetch `next`, if they read weights themselves.
    virtual void Make(int64_t begin, int64_t end, FirstWeights::Place next,
                      void* out) const = 0;
    // What Make reads for these rows; nothing where fetching it ahead is not
    // worth the while.
    virtual FirstWeights::Place InputOf(int64_t begin, int64_t end) const {
      (void)begin, (void)end;
      return {};
    }
  };

  virtual ~RowProducer() = default;
  // Of output 0; nothing for a kernel that cannot make rows after all. Asked
  // when the plan is made.
  virtual std::optional<RowElements> Elements() const = 0;
  // Output 0; nothing for an input that is left to Compute.
  virtual std::optional<RowImage> ImageOf(const Tensor& input) const = 0;
  // Calls `use` with the rows, which are there until it returns, and returns
  // what it does; false, and nothing is called, when there is no memory for the
  // kernel's weights. REQUIRES: ImageOf(input).
  virtual absl::StatusOr<bool> WithRows(
      const Tensor& input, ThreadPool* pool,
      absl::FunctionRef<absl::StatusOr<bool>(const Rows& rows)> use) const = 0;
};

// How a consumer reads an image.
struct BandPlan {
  // From the rows of the image (in) to the consumer's (out).
  WindowAxis y;
  // UNITS: bytes of the image's rows that a band has at most, unless one row
  // of the consumer's sees more.
  int64_t bytes = 0;
  // Into how many parts the rows are cut at most, one for each thread.
  int64_t parts = 1;
};

// Some rows of the consumer's and what they see; all of one image of the batch.
struct RowBand {
  int64_t image = 0;
  // The consumer's rows [begin, end).
  int64_t begin = 0;
  int64_t end = 0;
  // The rows that they see, [seen_begin, seen_end), one behind the other from
  // `rows` on.
  int64_t seen_begin = 0;
  int64_t seen_end = 0;
  const void* rows = nullptr;
};

// `y` for a band alone: an image that has just the rows that the band sees.
WindowAxis AxisOf(const WindowAxis& y, const RowBand& band);

// A role (kernel_role.h): a kernel that can compute some rows of output 0 from
// some rows of input 0. Its other inputs depend on the range of input 0 alone.
class RowConsumer {
 public:
  // One run's output. THREADS: any number at once.
  class Reader {
   public:
    virtual ~Reader() = default;
    // Computes the band's rows. The last tiles fetch `next`.
    virtual void Read(const RowBand& band, FirstWeights::Place next) const = 0;
  };

  virtual ~RowConsumer() = default;
  // Whether it can compute with rows of such elements; asked when the plan is
  // made.
  virtual bool Reads(const RowElements& elements) const = 0;
  // Nothing for an image that one kernel after the other computes faster, or
  // that is left to Compute.
  virtual std::optional<BandPlan> PlanBands(const RowImage& image,
                                            ThreadPool* pool) const = 0;
  // Allocates the outputs and calls `use` with the reader, which is there until
  // it returns. False, and nothing is done, when there is no memory for the
  // kernel's weights. REQUIRES: PlanBands(image). ERRORS: those of allocating
  // outputs.
  virtual absl::StatusOr<bool> WithReader(
      const RowImage& image, KernelContext* context,
      absl::FunctionRef<void(const Reader& reader)> use) const = 0;
};

// A kernel with the input of the first and the outputs of the second. Gives the
// bits of one after the other, which is what it does where bands do not pay.
// `between`: the first one's outputs, all of which the second reads. REQUIRES:
// the first is a RowProducer and the second a RowConsumer that reads its rows.
std::unique_ptr<Kernel> MakeRowBandKernel(std::unique_ptr<Kernel> producer,
                                          std::unique_ptr<Kernel> consumer,
                                          size_t between);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_ROW_BANDS_H_
