// Pooling, and padding, which often stands before it.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/quantization.h"
#include "engine/formats/onnx/windows.h"

namespace optfarm::formats {
namespace {

struct PooledImage {
  int rank = 0;
  SlidingWindow window;
};

absl::StatusOr<PooledImage> ReadPool(NodeLowering& n, Endpoint x) {
  PooledImage pool;
  OPTFARM_ASSIGN_OR_RETURN(pool.rank, n.Rank(x));
  if (pool.rank < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("an image of ", pool.rank, " dimensions"));
  }
  const PartialShape image = n.shape(x);
  OPTFARM_ASSIGN_OR_RETURN(pool.window,
                           ReadWindow(n, {}, image.dims().subspan(2)));
  return pool;
}

// Rounding up counts one more place where the window begins within the image or
// its first pads. As pads behind it, where the size is known.
bool RoundUpByPads(absl::Span<const int64_t> sizes, SlidingWindow* window) {
  if (!window->ceil_mode) return true;
  if (window->is_same) return false;
  for (int i = 0; i < window->rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (sizes[at] < 0) return false;
    const int64_t before = window->pads_before[at];
    const int64_t stride = window->strides[at];
    const int64_t room =
        sizes[at] + before + window->pads_after[at] - window->extent(i);
    if (room <= -stride) return false;
    int64_t places = (room + stride - 1) / stride;
    if (places * stride >= sizes[at] + before) --places;
    window->pads_after[at] =
        std::max(window->pads_after[at],
                 places * stride + window->extent(i) - sizes[at] - before);
  }
  window->ceil_mode = false;
  return true;
}

// Whether TensorFlow's op takes these pads: smaller than the window.
bool HasUsualPads(const SlidingWindow& window) {
  for (size_t i = 0; i < window.pads_before.size(); ++i) {
    if (window.pads_before[i] >= window.kernel[i] ||
        window.pads_after[i] >= window.kernel[i]) {
      return false;
    }
  }
  return true;
}

// An op of TensorFlow's on an image of one or two spatial dimensions.
Endpoint PoolAsImage(NodeLowering& n, const char* op, Endpoint x,
                     const PooledImage& pool) {
  const bool is_row = pool.rank == 3;
  const SlidingWindow window =
      is_row ? InTwoDimensions(pool.window) : pool.window;
  std::vector<OpAttr> attrs = WindowAttributes(window, false);
  attrs.emplace_back("ksize", OverImage(window.kernel));
  Endpoint image = n.ToChannelsLast(x, pool.rank);
  if (is_row) image = n.Unsqueeze(image, {1});
  Endpoint y = n.Add(op, {image}, std::move(attrs));
  if (is_row) y = n.Squeeze(y, {1});
  return n.ToChannelsFirst(y, pool.rank);
}

// What TensorFlow's ops cannot say: our own op, whose images have their
// channels first.
absl::StatusOr<std::vector<Endpoint>> PoolWindows(NodeLowering& n,
                                                  const char* kind, Endpoint x,
                                                  const PooledImage& pool) {
  const SlidingWindow& window = pool.window;
  if (window.pads_before.empty()) {
    return absl::UnimplementedError(
        "auto_pad needs an image of known size here");
  }
  std::vector<int64_t> pads = window.pads_before;
  pads.insert(pads.end(), window.pads_after.begin(), window.pads_after.end());
  return n.AddAll("WindowPool", {x},
                  {{"kind", kind},
                   {"kernel", window.kernel},
                   {"strides", window.strides},
                   {"dilations", window.dilations},
                   {"pads", pads},
                   {"ceil_mode", window.ceil_mode},
                   {"count_include_pad", n.Int("count_include_pad", 0) != 0},
                   {"storage_order", n.Int("storage_order", 0)}});
}

// Of images whose channels come first.
absl::StatusOr<std::vector<Endpoint>> MaxPooled(NodeLowering& n, Endpoint x) {
  OPTFARM_ASSIGN_OR_RETURN(const PooledImage pool, ReadPool(n, x));
  PooledImage as_image = pool;
  const bool is_usual =
      pool.rank <= 4 && !n.wants_output(1) && !pool.window.has_dilations() &&
      RoundUpByPads(n.shape(x).dims().subspan(2), &as_image.window) &&
      HasUsualPads(as_image.window);
  if (!is_usual) return PoolWindows(n, "MAX", x, pool);
  return std::vector<Endpoint>{PoolAsImage(n, "MaxPool", x, as_image)};
}

absl::StatusOr<Endpoint> AveragePooled(NodeLowering& n, Endpoint x) {
  OPTFARM_ASSIGN_OR_RETURN(const PooledImage pool, ReadPool(n, x));
  const bool counts_pads = n.Int("count_include_pad", 0) != 0;
  const bool is_usual =
      pool.rank <= 4 && !pool.window.ceil_mode &&
      !pool.window.has_dilations() &&
      (pool.window.is_same ? !counts_pads : !pool.window.has_pads());
  if (is_usual) return PoolAsImage(n, "AvgPool", x, pool);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> results,
                           PoolWindows(n, "AVERAGE", x, pool));
  return results.empty() ? Endpoint() : results[0];
}

absl::Status LowerMaxPool(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> results,
                           MaxPooled(n, n.input(0)));
  for (size_t i = 0; i < results.size(); ++i) {
    n.SetOutput(static_cast<int>(i), results[i]);
  }
  return absl::OkStatus();
}

absl::Status LowerAveragePool(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint y, AveragePooled(n, n.input(0)));
  n.SetOutput(0, y);
  return absl::OkStatus();
}

absl::Status LowerNhwcMaxPool(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(n.input(0)));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> results,
                           MaxPooled(n, n.ToChannelsFirst(n.input(0), rank)));
  if (!results.empty()) n.SetOutput(0, n.ToChannelsLast(results[0], rank));
  return absl::OkStatus();
}

absl::Status LowerQLinearAveragePool(NodeLowering& n) {
  const DataType type = n.dtype(n.input(0));
  const bool is_last = n.Int("channels_last", 0) != 0;
  Endpoint x = Dequantized(n, n.input(0), ReadQuantization(n, 1, type));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  if (is_last) x = n.ToChannelsFirst(x, rank);
  OPTFARM_ASSIGN_OR_RETURN(Endpoint y, AveragePooled(n, x));
  if (is_last) y = n.ToChannelsLast(y, rank);
  n.SetOutput(0, Quantized(n, y, ReadQuantization(n, 3, type)));
  return absl::OkStatus();
}

template <const char* kOp>
absl::Status LowerGlobalPool(NodeLowering& n) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  if (rank < 2) return absl::InvalidArgumentError("it needs an image");
  std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), 2);
  n.SetOutput(0, n.Add(kOp, {x, n.Int32s(axes)}, {{"keep_dims", true}}));
  return absl::OkStatus();
}
constexpr char kMean[] = "Mean", kMax[] = "Max";

constexpr LoweringRow kRows[] = {
    {"AveragePool", LowerAveragePool},
    {"GlobalAveragePool", LowerGlobalPool<kMean>},
    {"GlobalMaxPool", LowerGlobalPool<kMax>},
    {"MaxPool", LowerMaxPool},
    {"NhwcMaxPool", LowerNhwcMaxPool, 1, kNoLaterVersion, "com.microsoft"},
    {"QLinearAveragePool", LowerQLinearAveragePool, 1, kNoLaterVersion,
     "com.microsoft"},
};

}  // namespace

absl::Span<const LoweringRow> PoolingLowerings() { return kRows; }

}  // namespace optfarm::formats
