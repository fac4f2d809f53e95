#include "client_cli/local/label_image.h"

#include <algorithm>
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

absl::StatusOr<runtime::Tensor> LoadPicture(const LabelImageRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(const formats::Image image,
                           formats::LoadImage(request.image, 3));
  const formats::FloatImage resized =
      formats::ResizeBilinear(image, request.input_height, request.input_width);
  OPTFARM_ASSIGN_OR_RETURN(
      runtime::Tensor tensor,
      runtime::Tensor::Allocate(
          tensorflow::DT_FLOAT,
          runtime::Shape({1, request.input_height, request.input_width, 3})));
  std::transform(resized.pixels.begin(), resized.pixels.end(),
                 tensor.data<float>(), [&request](float value) {
                   return (value - request.input_mean) / request.input_std;
                 });
  return tensor;
}

absl::StatusOr<runtime::Tensor> Scores(
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
  if (scores.dtype() != tensorflow::DT_FLOAT || scores.num_elements() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "output '", graph::ToString(request.output_layer), "' is ",
        graph::DataTypeName(scores.dtype()), " ", scores.shape().ToString(),
        "; scores must be floats, at least one"));
  }
  return scores;
}

}  // namespace

absl::StatusOr<LabelledImage> LabelImage(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    std::shared_ptr<const formats::MemmappedPackage> package,
    const LabelImageRequest& request) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> labels,
                           LoadLabels(request.labels));
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Tensor scores,
                           Scores(model, std::move(package), request));
  const auto values = scores.flat<float>();
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
