// Spreads weights over a filter without groups and dilations.

#include "engine/formats/tflite/raising/transposed_filter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::formats::tflite_raising {
namespace {

// A spread filter has at most this many weights.
constexpr int64_t kMostWeights = int64_t{1} << 24;

// Dimensions of the filter and of what it becomes.
struct Spread {
  int64_t height = 0, width = 0, group_outputs = 0, inputs = 0;
  int64_t groups = 1;
  std::array<int64_t, 2> dilation = {1, 1};

  int64_t tall() const { return (height - 1) * dilation[0] + 1; }
  int64_t wide() const { return (width - 1) * dilation[1] + 1; }
  int64_t outputs() const { return group_outputs * groups; }
};

absl::StatusOr<Spread> ReadSpread(const Constant& filter, int64_t groups,
                                  std::array<int64_t, 2> dilation) {
  if (filter.dims.size() != 4) {
    return absl::UnimplementedError(absl::StrCat(
        "its filter has ", filter.dims.size(), " dimensions instead of 4"));
  }
  const Spread s{filter.dims[0], filter.dims[1], filter.dims[2],
                 filter.dims[3], groups,         dilation};
  if (groups < 1 || s.inputs % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        groups, " groups do not divide its ", s.inputs, " inputs"));
  }
  int64_t weights = 1;
  for (const int64_t factor :
       {std::min(s.height, kMostWeights), std::min(dilation[0], kMostWeights),
        std::min(s.width, kMostWeights), std::min(dilation[1], kMostWeights),
        std::min(s.group_outputs, kMostWeights), groups, s.inputs}) {
    if (factor < 0 || factor > kMostWeights / std::max<int64_t>(weights, 1)) {
      return absl::UnimplementedError(
          "its filter is too large without groups and dilations");
    }
    weights *= factor;
  }
  return s;
}

// The bytes of a weight that stands for zero.
std::string ZeroOf(const Constant& filter, int64_t channel) {
  std::string zero(filter.bytes.size() / static_cast<size_t>(std::max<int64_t>(
                                             filter.elements(), 1)),
                   '\0');
  if (filter.is_quantized() && zero.size() == 1) {
    zero[0] = static_cast<char>(filter.zero_point[static_cast<size_t>(
        filter.zero_point.size() > 1 ? channel : 0)]);
  }
  return zero;
}

std::string SpreadBytes(const Constant& filter, const Spread& s) {
  std::string bytes;
  for (int64_t o = 0; o < s.outputs(); ++o) {
    const std::string zero = ZeroOf(filter, o % s.group_outputs);
    for (int64_t i = 0; i < s.tall() * s.wide() * s.inputs; ++i) bytes += zero;
  }
  const size_t width = ZeroOf(filter, 0).size();
  const int64_t group_inputs = s.inputs / s.groups;
  for (int64_t i = 0; i < filter.elements(); ++i) {
    const int64_t input = i % s.inputs;
    const int64_t output =
        i / s.inputs % s.group_outputs + input / group_inputs * s.group_outputs;
    const int64_t column = i / (s.inputs * s.group_outputs) % s.width;
    const int64_t row = i / (s.inputs * s.group_outputs * s.width);
    const int64_t to = ((output * s.tall() + row * s.dilation[0]) * s.wide() +
                        column * s.dilation[1]) *
                           s.inputs +
                       input;
    std::copy_n(filter.bytes.data() + static_cast<size_t>(i) * width, width,
                bytes.data() + static_cast<size_t>(to) * width);
  }
  return bytes;
}

// A value for each output of each group.
template <typename T>
std::vector<T> Repeated(const std::vector<T>& values, int64_t groups) {
  std::vector<T> all;
  for (int64_t g = 0; g < groups; ++g) {
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

absl::StatusOr<Constant> TransposedFilter(const Constant& filter,
                                          int64_t groups,
                                          std::array<int64_t, 2> dilation) {
  if (groups == 1 && dilation[0] == 1 && dilation[1] == 1) {
    return Transposed(filter, {2, 0, 1, 3});
  }
  OPTFARM_ASSIGN_OR_RETURN(const Spread s,
                           ReadSpread(filter, groups, dilation));
  const bool has_channels = filter.scale.size() > 1;
  if (has_channels && filter.channel_axis() != 2) {
    return absl::UnimplementedError(
        "its scales do not belong to its outputs, and it has groups or "
        "dilations");
  }
  Constant spread;
  spread.dtype = filter.dtype;
  spread.dims = {s.outputs(), s.tall(), s.wide(), s.inputs};
  spread.bytes = SpreadBytes(filter, s);
  if (!filter.is_quantized()) return spread;
  const int64_t copies = has_channels ? groups : 1;
  OPTFARM_RETURN_IF_ERROR(SetScales(Repeated(filter.scale, copies),
                                    Repeated(filter.zero_point, copies), 0,
                                    &spread));
  return spread;
}

}  // namespace optfarm::formats::tflite_raising
