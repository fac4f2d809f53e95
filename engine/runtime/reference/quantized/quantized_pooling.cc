// QuantizedMaxPool and QuantizedAvgPool: the range passes through; an average
// of quantized values is the quantized value of the average, truncated as
// TensorFlow does.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/nn/window.h"
#include "engine/runtime/reference/quantized/quantized_families.h"
#include "engine/runtime/reference/quantized/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

using tensorflow::NodeDef;

// Rows or columns of the image that a window position covers.
struct Span {
  int64_t begin = 0;
  int64_t end = 0;
};

Span Covered(const WindowAxis& axis, int64_t position) {
  const int64_t start = position * axis.stride - axis.pad_before;
  return {std::max<int64_t>(start, 0), std::min(start + axis.size, axis.in)};
}

// What a window position covers. OWNERSHIP: borrowed.
struct Patch {
  const uint8_t* image = nullptr;
  // UNITS: bytes.
  int64_t row_stride = 0;
  int64_t pixel_stride = 0;
  Span y, x;

  int64_t count() const {
    return std::max<int64_t>((y.end - y.begin) * (x.end - x.begin), 1);
  }
};

// Channels that are pooled at a time, as vectors that compilers make registers
// of.
constexpr int kBlock = 32;
using Bytes = uint8_t __attribute__((vector_size(kBlock)));
using Shorts = uint16_t __attribute__((vector_size(kBlock)));
using Ints = uint32_t __attribute__((vector_size(kBlock)));

Bytes LoadBytes(const uint8_t* from) {
  Bytes quantized;
  std::memcpy(&quantized, from, sizeof(quantized));
  return quantized;
}

// Calls visit(values) for each pixel of the patch.
template <typename Visit>
void ForEachPixel(const Patch& patch, int64_t channel, Visit visit) {
  for (int64_t row = patch.y.begin; row < patch.y.end; ++row) {
    const uint8_t* from = patch.image + row * patch.row_stride + channel;
    for (int64_t column = patch.x.begin; column < patch.x.end; ++column) {
      visit(from + column * patch.pixel_stride);
    }
  }
}

// A block of channels from `channel` on.
void MaxOfBlock(const Patch& patch, int64_t channel, uint8_t* out) {
  Bytes most = {};
  ForEachPixel(patch, channel, [&](const uint8_t* pixel) {
    const Bytes quantized = LoadBytes(pixel);
    most = quantized > most ? quantized : most;
  });
  std::memcpy(out + channel, &most, sizeof(most));
}

void MaxOfOne(const Patch& patch, int64_t channel, uint8_t* out) {
  uint8_t most = 0;
  ForEachPixel(patch, channel,
               [&](const uint8_t* pixel) { most = std::max(most, *pixel); });
  out[channel] = most;
}

// Up to here sums fit into 16 bits, and multiplying by 2^24 / count, rounded
// up, gives the whole quotient: what is too much is at most
// 255 * count / 2^24, less than 1 / count.
constexpr int64_t kMostInShort = 256;

// Every second channel in a sum, and of the sums every second: what widens
// without moving between lanes. The machine's low byte comes first.
struct Sums {
  Shorts even = {};
  Shorts odd = {};

  void Add(const uint8_t* from) {
    const auto quantized = reinterpret_cast<Shorts>(LoadBytes(from));
    even += quantized & 0xff;
    odd += quantized >> 8;
  }
  void Add(const Sums& other) {
    even += other.even;
    odd += other.odd;
  }
  void StoreAverage(int64_t count, uint8_t* out) const {
    const uint32_t inverse = (1u << 24) / static_cast<uint32_t>(count) + 1;
    const auto low = reinterpret_cast<Ints>(even);
    const auto high = reinterpret_cast<Ints>(odd);
    const Ints quantized = ((low & 0xffff) * inverse >> 24) |
                           ((high & 0xffff) * inverse >> 24 << 8) |
                           ((low >> 16) * inverse >> 24 << 16) |
                           ((high >> 16) * inverse >> 24 << 24);
    std::memcpy(out, &quantized, sizeof(quantized));
  }
};

void AverageOfBlock(const Patch& patch, int64_t channel, uint8_t* out) {
  Sums sums;
  ForEachPixel(patch, channel, [&](const uint8_t* pixel) { sums.Add(pixel); });
  sums.StoreAverage(patch.count(), out + channel);
}

// Blocks of one output row whose windows share columns, which are summed once;
// returns the first channel that is left.
int64_t AverageRow(Patch patch, const WindowAxis& x, int64_t channels,
                   std::vector<Sums>* columns, uint8_t* out) {
  if (x.size <= x.stride ||
      x.size * (patch.y.end - patch.y.begin) > kMostInShort) {
    return 0;
  }
  columns->resize(static_cast<size_t>(x.in));
  int64_t channel = 0;
  for (; channel + kBlock <= channels; channel += kBlock) {
    for (int64_t i = 0; i < x.in; ++i) {
      patch.x = {i, i + 1};
      Sums sums;
      ForEachPixel(patch, channel,
                   [&](const uint8_t* pixel) { sums.Add(pixel); });
      (*columns)[i] = sums;
    }
    for (int64_t i = 0; i < x.out; ++i) {
      patch.x = Covered(x, i);
      Sums sums;
      for (int64_t k = patch.x.begin; k < patch.x.end; ++k) {
        sums.Add((*columns)[k]);
      }
      sums.StoreAverage(patch.count(), out + i * channels + channel);
    }
  }
  return channel;
}

void AverageOfOne(const Patch& patch, int64_t channel, uint8_t* out) {
  int64_t sum = 0;
  ForEachPixel(patch, channel, [&](const uint8_t* pixel) { sum += *pixel; });
  out[channel] = static_cast<uint8_t>(sum / patch.count());
}

// Channels [channel, channels) of one output pixel.
template <bool kIsMax>
void PoolPixel(const Patch& patch, int64_t channel, int64_t channels,
               uint8_t* out) {
  if (kIsMax || patch.count() <= kMostInShort) {
    for (; channel + kBlock <= channels; channel += kBlock) {
      if (kIsMax) {
        MaxOfBlock(patch, channel, out);
      } else {
        AverageOfBlock(patch, channel, out);
      }
    }
  }
  for (; channel < channels; ++channel) {
    if (kIsMax) {
      MaxOfOne(patch, channel, out);
    } else {
      AverageOfOne(patch, channel, out);
    }
  }
}

template <bool kIsMax>
absl::Status Pool(KernelContext* c, const WindowAttrs& attrs, int64_t size_y,
                  int64_t size_x) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
  const Tensor& input = c->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireInputDtype(*c, 0, tensorflow::DT_QUINT8));
  OPTFARM_RETURN_IF_ERROR(RequireRank(input, "input", 4));
  OPTFARM_ASSIGN_OR_RETURN(const Range range, InputRange(*c, 1));
  OPTFARM_ASSIGN_OR_RETURN(
      const Window window,
      PlaceWindow(attrs, input.dim(1), input.dim(2), size_y, size_x));
  const int64_t channels = input.dim(3);
  OPTFARM_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::FromDims({input.dim(0), window.y.out, window.x.out, channels}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           c->AllocateOutput(0, tensorflow::DT_QUINT8, shape));
  const int64_t image_size = input.dim(1) * input.dim(2) * channels;
  const int64_t rows = input.dim(0) * window.y.out;
  c->pool()->ParallelFor(rows, 4, [&](int64_t begin, int64_t end) {
    std::vector<Sums> columns;
    Patch patch;
    patch.row_stride = window.x.in * channels;
    patch.pixel_stride = channels;
    for (int64_t row = begin; row < end; ++row) {
      patch.image = input.data<uint8_t>() + row / window.y.out * image_size;
      patch.y = Covered(window.y, row % window.y.out);
      uint8_t* target = out->data<uint8_t>() + row * window.x.out * channels;
      int64_t done = 0;
      if (!kIsMax) {
        done = AverageRow(patch, window.x, channels, &columns, target);
      }
      if (done == channels) continue;
      for (int64_t column = 0; column < window.x.out; ++column) {
        patch.x = Covered(window.x, column);
        PoolPixel<kIsMax>(patch, done, channels, target + column * channels);
      }
    }
  });
  SetOutputRange(c, 1, range);
  return absl::OkStatus();
}

template <bool kIsMax>
absl::StatusOr<std::unique_ptr<Kernel>> MakePool(const NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, "T", {tensorflow::DT_QUINT8}));
  OPTFARM_ASSIGN_OR_RETURN(const WindowAttrs attrs, ReadWindowAttrs(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                           ReadWindowList(node, "ksize", false));
  return MakeKernel([=](KernelContext* c) {
    return Pool<kIsMax>(c, attrs, size[0], size[1]);
  });
}

}  // namespace

void AddQuantizedPoolingKernels(KernelCatalog* catalog) {
  catalog->Add("QuantizedMaxPool", MakePool<true>);
  catalog->Add("QuantizedAvgPool", MakePool<false>);
}

}  // namespace optfarm::runtime
