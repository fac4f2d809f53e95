#include "client_cli/local/label_image.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/samples/image.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/graph/attr.h"
#include "engine/runtime/session/session.h"

namespace optfarm::client_cli {
namespace {

constexpr size_t kMostLabels = 5;
// UNITS: bytes.
constexpr uint64_t kMostLabelFileBytes = uint64_t{64} << 20;

absl::StatusOr<std::vector<std::string>> LoadLabels(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMostLabelFileBytes));
  std::vector<std::string> labels;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    labels.emplace_back(absl::StripSuffix(line, "\r"));
  }
  if (labels.back().empty()) labels.pop_back();
  if (labels.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has no labels, one a line"));
  }
  return labels;
}

// The number of one channel, where there is one for each or one for all.
float At(const std::vector<float>& values, int channel) {
  return values[values.size() == 1 ? 0 : channel];
}

// Writes what `value` makes of each pixel and its channel.
template <typename T, typename Value>
void Feed(const formats::FloatImage& image, const LabelImageRequest& request,
          const Value& value, T* out) {
  const size_t pixels = image.pixels.size() / 3;
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const size_t pixel = i / 3, channel = i % 3;
    out[request.channels_first ? channel * pixels + pixel : i] =
        static_cast<T>(value(image.pixels[i], static_cast<int>(channel)));
  }
}

absl::StatusOr<runtime::Tensor> LoadPicture(const LabelImageRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(const formats::Image image,
                           formats::LoadImage(request.image, 3));
  const formats::FloatImage resized =
      formats::ResizeBilinear(image, request.input_height, request.input_width);
  const int64_t height = request.input_height, width = request.input_width;
  OPTFARM_ASSIGN_OR_RETURN(
      runtime::Tensor tensor,
      runtime::Tensor::Allocate(request.input_type,
                                request.channels_first
                                    ? runtime::Shape({1, 3, height, width})
                                    : runtime::Shape({1, height, width, 3})));
  switch (request.input_type) {
    case tensorflow::DT_UINT8:
      Feed(
          resized, request, [](float v, int) { return std::lround(v); },
          tensor.data<uint8_t>());
      break;
    case tensorflow::DT_INT8:
      Feed(
          resized, request, [](float v, int) { return std::lround(v) - 128; },
          tensor.data<int8_t>());
      break;
    default:
      Feed(
          resized, request,
          [&request](float v, int channel) {
            return (v - At(request.input_mean, channel)) /
                   At(request.input_std, channel);
          },
          tensor.data<float>());
  }
  return tensor;
}

template <typename T>
std::vector<float> AsFloats(const runtime::Tensor& tensor) {
  const auto values = tensor.flat<T>();
  return {values.begin(), values.end()};
}

absl::StatusOr<std::vector<float>> Scores(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    std::shared_ptr<const formats::MemmappedPackage> package,
    const LabelImageRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Tensor picture, LoadPicture(request));
  runtime::SessionOptions options;
  options.find_region = formats::RegionsOf(std::move(package));
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session,
      runtime::Session::Create(model, {request.input_layer},
                               {request.output_layer}, options));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<runtime::Tensor> answers,
                           session->Run({picture}));
  const runtime::Tensor& scores = answers[0];
  if (scores.num_elements() > 0) {
    switch (scores.dtype()) {
      case tensorflow::DT_FLOAT:
        return AsFloats<float>(scores);
      case tensorflow::DT_UINT8:
        return AsFloats<uint8_t>(scores);
      case tensorflow::DT_INT8:
        return AsFloats<int8_t>(scores);
      default:
        break;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "output '", graph::ToString(request.output_layer), "' is ",
      graph::DataTypeName(scores.dtype()), " ", scores.shape().ToString(),
      "; scores must be floats or bytes, at least one"));
}

}  // namespace

absl::StatusOr<LabelledImage> LabelImage(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    std::shared_ptr<const formats::MemmappedPackage> package,
    const LabelImageRequest& request) {
  std::vector<std::string> labels = request.names;
  if (!request.labels.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(labels, LoadLabels(request.labels));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> values,
                           Scores(model, std::move(package), request));
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t most = std::min({kMostLabels, labels.size(), order.size()});
  std::partial_sort(order.begin(), order.begin() + most, order.end(),
                    [&values](int64_t a, int64_t b) {
                      if (values[a] > values[b]) return true;
                      // NaN is never above anything: it comes last.
                      if (values[b] > values[a]) return false;
                      const bool a_nan = values[a] != values[a];
                      const bool b_nan = values[b] != values[b];
                      return a_nan != b_nan ? b_nan : a < b;
                    });
  LabelledImage answer;
  answer.labels = static_cast<int64_t>(labels.size());
  answer.scores = static_cast<int64_t>(values.size());
  for (size_t i = 0; i < most; ++i) {
    const int64_t index = order[i];
    answer.best.push_back(
        {index < answer.labels ? labels[index] : std::string(), index,
         values[index]});
  }
  return answer;
}

}  // namespace optfarm::client_cli
