#include "engine/formats/onnx/raising/window_attributes.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace optfarm::formats {

absl::StatusOr<bool> HasChannelsFirst(const NodeRaiser& n) {
  const auto format = graph::GetDataFormat(n.def());
  if (format.ok() && *format != graph::DataFormat::kNchwVectC) {
    return graph::HasChannelsFirst(*format);
  }
  return absl::UnimplementedError(absl::StrCat(
      "data_format ", graph::DataFormatText(n.def()), " has no form in ONNX"));
}

absl::StatusOr<std::vector<int64_t>> SpatialEntries(const NodeRaiser& n,
                                                    absl::string_view attribute,
                                                    int spatial_rank,
                                                    bool channels_first) {
  const size_t rank = static_cast<size_t>(spatial_rank) + 2;
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int64_t> entries,
      graph::GetIntsOr(n.def(), attribute, std::vector<int64_t>(rank, 1)));
  if (entries.size() != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat(attribute, " is [", absl::StrJoin(entries, ", "),
                     "], expected ", rank, " entries"));
  }
  const size_t first = channels_first ? 2 : 1;
  if (entries[0] != 1 || entries[channels_first ? 1 : rank - 1] != 1) {
    return absl::UnimplementedError(
        absl::StrCat(attribute, " is [", absl::StrJoin(entries, ", "),
                     "]; batches and channels must have 1"));
  }
  const auto begin = entries.begin() + static_cast<int64_t>(first);
  return std::vector<int64_t>(begin, begin + spatial_rank);
}

absl::StatusOr<OnnxWindow> ReadWindow(NodeRaiser& n, int input,
                                      int spatial_rank) {
  OPTFARM_ASSIGN_OR_RETURN(const bool channels_first, HasChannelsFirst(n));
  const int rank = spatial_rank + 2;
  OnnxWindow window;
  if (!channels_first) window.order = ChannelsSecond(rank);
  OPTFARM_ASSIGN_OR_RETURN(
      window.strides,
      SpatialEntries(n, "strides", spatial_rank, channels_first));
  OPTFARM_ASSIGN_OR_RETURN(
      window.dilations,
      SpatialEntries(n, "dilations", spatial_rank, channels_first));
  OPTFARM_ASSIGN_OR_RETURN(window.padding, graph::GetPadding(n.def()));
  const int first = channels_first ? 2 : 1;
  if (window.padding == graph::Padding::kExplicit) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                             graph::GetInts(n.def(), "explicit_paddings"));
    if (pads.size() != static_cast<size_t>(2 * rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat("explicit_paddings has ", pads.size(),
                       " entries, expected ", 2 * rank));
    }
    for (int end = 0; end < 2; ++end) {
      for (int i = 0; i < spatial_rank; ++i) {
        window.explicit_pads.push_back(
            pads[static_cast<size_t>(2 * (first + i) + end)]);
      }
    }
  }
  const graph::PartialShape& shape = n.InShape(input);
  for (int i = 0; i < spatial_rank; ++i) {
    window.picture.push_back(
        shape.has_rank() && shape.rank() == rank ? shape.dim(first + i) : -1);
  }
  return window;
}

namespace {

// What TensorFlow's SAME adds: the odd pixel at the end. nullopt where it
// depends on sizes that are not known.
std::optional<std::vector<int64_t>> SamePads(const OnnxWindow& window) {
  std::vector<int64_t> before, after;
  for (size_t i = 0; i < window.strides.size(); ++i) {
    const int64_t stride = window.strides[i];
    const int64_t reach = (window.size[i] - 1) * window.dilations[i] + 1;
    int64_t total = 0;
    if (stride == 1) {
      total = reach - 1;
    } else if (window.picture[i] < 0) {
      return std::nullopt;
    } else {
      const int64_t steps = (window.picture[i] + stride - 1) / stride;
      total = std::max<int64_t>(
          (steps - 1) * stride + reach - window.picture[i], 0);
    }
    before.push_back(total / 2);
    after.push_back(total - total / 2);
  }
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

}  // namespace

std::vector<OnnxAttribute> WindowAttributes(const OnnxWindow& window) {
  std::vector<OnnxAttribute> attributes = {{"kernel_shape", window.size},
                                           {"strides", window.strides}};
  const bool is_dilated =
      std::any_of(window.dilations.begin(), window.dilations.end(),
                  [](int64_t d) { return d != 1; });
  if (is_dilated) attributes.push_back({"dilations", window.dilations});
  if (window.padding == graph::Padding::kExplicit) {
    attributes.push_back({"pads", window.explicit_pads});
  } else if (window.padding == graph::Padding::kSame) {
    if (const auto pads = SamePads(window)) {
      attributes.push_back({"pads", *pads});
    } else {
      attributes.push_back({"auto_pad", std::string("SAME_UPPER")});
    }
  }
  return attributes;
}

}  // namespace optfarm::formats
