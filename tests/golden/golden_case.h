// A case of TensorFlow's own results: the model, what is fed, what TensorFlow
// answers, and the graphs that its transforms made.

#ifndef OPTFARM_TESTS_GOLDEN_GOLDEN_CASE_H_
#define OPTFARM_TESTS_GOLDEN_GOLDEN_CASE_H_

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/tensor.h"
#include "engine/transforms/machinery/transform_string.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {

// One folder below golden/ of the shared test data.
class GoldenCase {
 public:
  explicit GoldenCase(const std::string& name)
      : folder_(TestDataPath(absl::StrCat("golden/", name))) {
    std::ifstream file(absl::StrCat(folder_, "/case.json"));
    json_ = nlohmann::json::parse(file);
  }

  std::string Path(const std::string& relative) const {
    return absl::StrCat(folder_, "/", relative);
  }

  graph::Graph Original() const {
    return Load(TestDataPath(json_["model"].get<std::string>()));
  }

  graph::Graph Expected(const std::string& variant) const {
    return Load(Path(variant + "/expected.pb"));
  }

  std::vector<transforms::TransformStep> Steps(
      const std::string& variant) const {
    std::string text = json_["results"][variant]["transforms"];
    text = text.substr(0, text.find("  (applied"));
    return transforms::ParseTransforms(text).value();
  }

  std::vector<graph::TensorName> Inputs() const {
    std::vector<graph::TensorName> names;
    for (const auto& input : json_["inputs"]) {
      names.push_back(Name(input["name"]));
    }
    return names;
  }

  std::vector<graph::TensorName> Outputs() const {
    std::vector<graph::TensorName> names;
    for (const auto& output : json_["outputs"]) names.push_back(Name(output));
    return names;
  }

  std::set<std::string> IgnoredAttributes() const {
    std::set<std::string> names;
    if (json_.contains("attributes_dropped_for_the_reference")) {
      for (const auto& [name, count] :
           json_["attributes_dropped_for_the_reference"].items()) {
        names.insert(name);
      }
    }
    return names;
  }

  int samples() const { return json_["samples"]; }

  // What is fed for one sample.
  std::vector<runtime::Tensor> Feeds(int sample) const {
    std::vector<runtime::Tensor> feeds;
    for (const auto& input : json_["inputs"]) {
      feeds.push_back(
          LoadSample(input["file"], input["per_sample"] ? sample : -1));
    }
    return feeds;
  }

  // TensorFlow's answer of output `index`, of the original graph for "".
  runtime::Tensor Answer(const std::string& variant, int index,
                         int sample) const {
    const std::string name = json_["outputs"][index];
    const std::string file = absl::StrCat(
        "out.", absl::StrReplaceAll(name, {{"/", "__"}, {":", "_"}}), ".npy");
    return LoadSample(variant.empty() ? file : variant + "/" + file, sample);
  }

 private:
  static graph::TensorName Name(const nlohmann::json& text) {
    return graph::ParseTensorName(text.get<std::string>()).value();
  }

  static graph::Graph Load(const std::string& path) {
    return graph::Graph::FromDef(formats::LoadGraphDef(path).value()).value();
  }

  // A slice of the leading axis, or for -1 the whole array.
  runtime::Tensor LoadSample(const std::string& file, int sample) const {
    const runtime::Tensor all =
        runtime::Tensor::FromProto(formats::LoadNpy(Path(file)).value())
            .value();
    if (sample < 0) return all;
    const runtime::Shape shape =
        runtime::Shape::FromDims(all.shape().dims().subspan(1)).value();
    runtime::Tensor one = runtime::Tensor::Allocate(all.dtype(), shape).value();
    const size_t bytes = one.TotalBytes();
    std::memcpy(one.raw(), static_cast<const char*>(all.raw()) + sample * bytes,
                bytes);
    return one;
  }

  std::string folder_;
  nlohmann::json json_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_GOLDEN_GOLDEN_CASE_H_
