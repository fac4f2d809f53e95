#include "engine/formats/onnx/windows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optfarm::formats {
namespace {

// Larger numbers in files are damage; products of them must not overflow.
constexpr int64_t kMost = int64_t{1} << 24;

absl::Status CheckList(absl::string_view name,
                       const std::vector<int64_t>& values, size_t count,
                       int64_t least) {
  const bool fits = values.size() == count &&
                    std::all_of(values.begin(), values.end(), [&](int64_t v) {
                      return v >= least && v <= kMost;
                    });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is [", absl::StrJoin(values, ","), "], but ", count,
                   " values from ", least, " are needed"));
}

// Pads so that each `stride` values give one.
absl::Status PadAsSame(absl::Span<const int64_t> sizes, bool more_in_front,
                       SlidingWindow* window) {
  for (int i = 0; i < window->rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t stride = window->strides[at];
    const int64_t size = sizes[at];
    if (size < 0 && stride != 1) {
      if (!more_in_front) {
        window->pads_before.clear();
        window->pads_after.clear();
        return absl::OkStatus();
      }
      return absl::UnimplementedError(
          "auto_pad SAME_LOWER needs an image of known size");
    }
    const int64_t out = size < 0 ? 1 : (size + stride - 1) / stride;
    const int64_t pads =
        size < 0 ? window->extent(i) - 1
                 : std::max<int64_t>(
                       0, (out - 1) * stride + window->extent(i) - size);
    const int64_t smaller = pads / 2;
    window->pads_before.push_back(more_in_front ? pads - smaller : smaller);
    window->pads_after.push_back(more_in_front ? smaller : pads - smaller);
  }
  return absl::OkStatus();
}

}  // namespace

bool SlidingWindow::has_pads() const {
  const auto any = [](const std::vector<int64_t>& pads) {
    return std::any_of(pads.begin(), pads.end(),
                       [](int64_t pad) { return pad != 0; });
  };
  return any(pads_before) || any(pads_after);
}

bool SlidingWindow::has_dilations() const {
  return std::any_of(dilations.begin(), dilations.end(),
                     [](int64_t dilation) { return dilation != 1; });
}

int64_t SlidingWindow::extent(int i) const {
  const auto at = static_cast<size_t>(i);
  return (kernel[at] - 1) * dilations[at] + 1;
}

absl::StatusOr<SlidingWindow> ReadWindow(NodeLowering& n,
                                         std::vector<int64_t> kernel,
                                         absl::Span<const int64_t> sizes) {
  SlidingWindow window;
  window.kernel =
      n.has_attr("kernel_shape") ? n.Ints("kernel_shape") : std::move(kernel);
  const size_t rank = sizes.size();
  OPTFARM_RETURN_IF_ERROR(CheckList("kernel_shape", window.kernel, rank, 1));
  window.strides = n.Ints("strides");
  if (window.strides.empty()) window.strides.assign(rank, 1);
  OPTFARM_RETURN_IF_ERROR(CheckList("strides", window.strides, rank, 1));
  window.dilations = n.Ints("dilations");
  if (window.dilations.empty()) window.dilations.assign(rank, 1);
  OPTFARM_RETURN_IF_ERROR(CheckList("dilations", window.dilations, rank, 1));
  window.ceil_mode = n.Int("ceil_mode", 0) != 0;
  const std::string auto_pad = n.String("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    window.is_same = auto_pad == "SAME_UPPER";
    OPTFARM_RETURN_IF_ERROR(PadAsSame(sizes, !window.is_same, &window));
    return window;
  }
  std::vector<int64_t> pads = n.Ints("pads");
  if (pads.empty() || auto_pad == "VALID") pads.assign(2 * rank, 0);
  OPTFARM_RETURN_IF_ERROR(CheckList("pads", pads, 2 * rank, 0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.pads_before.assign(pads.begin(), middle);
  window.pads_after.assign(middle, pads.end());
  return window;
}

SlidingWindow InTwoDimensions(const SlidingWindow& window) {
  SlidingWindow two = window;
  two.kernel.insert(two.kernel.begin(), 1);
  two.strides.insert(two.strides.begin(), 1);
  two.dilations.insert(two.dilations.begin(), 1);
  if (!two.pads_before.empty()) {
    two.pads_before.insert(two.pads_before.begin(), 0);
    two.pads_after.insert(two.pads_after.begin(), 0);
  }
  return two;
}

std::vector<int64_t> OverImage(const std::vector<int64_t>& spatial) {
  std::vector<int64_t> all = {1};
  all.insert(all.end(), spatial.begin(), spatial.end());
  all.push_back(1);
  return all;
}

std::vector<OpAttr> WindowAttributes(const SlidingWindow& window,
                                     bool with_dilations) {
  std::vector<OpAttr> attrs = {{"strides", OverImage(window.strides)}};
  if (with_dilations && window.has_dilations()) {
    attrs.emplace_back("dilations", OverImage(window.dilations));
  }
  if (window.is_same) {
    attrs.emplace_back("padding", "SAME");
  } else if (!window.has_pads()) {
    attrs.emplace_back("padding", "VALID");
  } else {
    std::vector<int64_t> pads = {0, 0};
    for (size_t i = 0; i < window.pads_before.size(); ++i) {
      pads.push_back(window.pads_before[i]);
      pads.push_back(window.pads_after[i]);
    }
    pads.insert(pads.end(), {0, 0});
    attrs.emplace_back("padding", "EXPLICIT");
    attrs.emplace_back("explicit_paddings", pads);
  }
  return attrs;
}

}  // namespace optfarm::formats
