// A model of another format with the answers that a runtime of that format
// gave: what is fed, by formula, and what the answers agree with.

#ifndef OPTFARM_TESTS_GOLDEN_INTERCHANGE_CASE_H_
#define OPTFARM_TESTS_GOLDEN_INTERCHANGE_CASE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/samples/npy.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {

// A tensor's elements as float64, in row-major order.
inline std::vector<double> AsDoubles(const runtime::Tensor& tensor) {
  tensorflow::NodeDef cast;
  cast.set_op("Cast");
  graph::SetType(&cast, "SrcT", tensor.dtype());
  graph::SetType(&cast, "DstT", tensorflow::DT_DOUBLE);
  const auto wide = runtime::EvaluateNode(cast, {tensor}, 1);
  if (!wide.ok()) return {};
  const auto flat = static_cast<const runtime::Tensor&>((*wide)[0]);
  return {flat.flat<double>().begin(), flat.flat<double>().end()};
}

// How many quantized elements were compared, and agree.
struct StepCount {
  int64_t elements = 0, exact = 0, near = 0;

  StepCount& operator+=(const StepCount& other) {
    elements += other.elements;
    exact += other.exact;
    near += other.near;
    return *this;
  }
};

// One file below interchange/golden of the shared test data.
class InterchangeCase {
 public:
  // "onnx/mnist_8".
  explicit InterchangeCase(const std::string& name) {
    std::ifstream file(
        TestDataPath(absl::StrCat("interchange/golden/", name, ".json")));
    json_ = nlohmann::json::parse(file);
  }

  std::string ModelPath() const {
    return TestDataPath(
        absl::StrCat("interchange/models/", json_["file"].get<std::string>()));
  }
  int samples() const { return static_cast<int>(json_["samples"].size()); }
  int inputs(int sample) const { return Size(sample, "inputs"); }
  int outputs(int sample) const { return Size(sample, "outputs"); }
  std::string InputName(int sample, int i) const {
    return Entry(sample, "inputs", i)["name"];
  }
  std::string OutputName(int sample, int i) const {
    return Entry(sample, "outputs", i)["name"];
  }

  runtime::Tensor Feed(int sample, int i) const {
    const nlohmann::json input = Entry(sample, "inputs", i);
    const runtime::Shape shape =
        runtime::Shape::FromDims(input["shape"].get<std::vector<int64_t>>())
            .value();
    const std::string dtype = input["dtype"];
    const bool is_float = dtype.rfind("float", 0) == 0;
    const std::vector<double> values = Fill(input["fill"], shape, is_float);
    tensorflow::NodeDef cast;
    cast.set_op("Cast");
    graph::SetType(&cast, "SrcT", tensorflow::DT_DOUBLE);
    graph::SetType(&cast, "DstT", graph::ParseDataType(dtype).value());
    const auto wide = runtime::Tensor::FromValues<double>(shape, values);
    return runtime::EvaluateNode(cast, {wide}, 1).value()[0];
  }

  // Exact is nearer than half a step, near is nearer than one and a half;
  // nothing is counted for an answer that is not quantized.
  StepCount Steps(int sample, int i, const runtime::Tensor& answer) const {
    const nlohmann::json expected = Entry(sample, "outputs", i);
    if (expected["compare"]["kind"] != "steps") return {};
    const double step = expected["compare"]["step"];
    const std::vector<double> got = AsDoubles(answer);
    const std::vector<int64_t> places =
        Places(static_cast<int64_t>(got.size()));
    StepCount count;
    for (size_t j = 0; j < places.size(); ++j) {
      const double error = std::abs(got[static_cast<size_t>(places[j])] -
                                    expected["values"][j].get<double>());
      ++count.elements;
      count.exact += error < 0.5 * step;
      count.near += error < 1.5 * step;
    }
    return count;
  }

  // The largest difference from what is recorded, of the largest value.
  double RelativeDifference(int sample, int i,
                            const runtime::Tensor& answer) const {
    const nlohmann::json expected = Entry(sample, "outputs", i);
    const std::vector<double> got = AsDoubles(answer);
    const std::vector<int64_t> places =
        Places(static_cast<int64_t>(got.size()));
    double difference = 0;
    for (size_t j = 0; j < places.size() && j < expected["values"].size();
         ++j) {
      const nlohmann::json& value = expected["values"][j];
      if (!value.is_number()) continue;
      difference = std::max(
          difference,
          std::abs(got[static_cast<size_t>(places[j])] - value.get<double>()));
    }
    return difference / std::max(expected["absmax"].get<double>(), 0.001);
  }

  // What is wrong with the answer; empty when it agrees.
  std::string Disagreement(int sample, int i,
                           const runtime::Tensor& answer) const {
    const nlohmann::json expected = Entry(sample, "outputs", i);
    const auto dims = expected["shape"].get<std::vector<int64_t>>();
    if (answer.shape() != runtime::Shape::FromDims(dims).value()) {
      return absl::StrCat("the shape is ", answer.shape().ToString(), ", not ",
                          runtime::Shape::FromDims(dims).value().ToString());
    }
    const std::vector<double> got = AsDoubles(answer);
    if (static_cast<int64_t>(got.size()) != answer.num_elements()) {
      return "the answer has no numbers";
    }
    const std::string kind = expected["compare"]["kind"];
    if (kind == "float") return FloatDisagreement(expected, got);
    const double step =
        kind == "steps" ? expected["compare"]["step"].get<double>() : 1;
    const double share = kind == "steps"
                             ? expected["compare"]["within"].get<double>()
                             : expected["compare"]["share"].get<double>();
    const double reach = kind == "steps" ? 1.5 * step : 0.5;
    const std::vector<int64_t> places =
        Places(static_cast<int64_t>(got.size()));
    int64_t near = 0;
    for (size_t j = 0; j < places.size(); ++j) {
      const double value =
          expected["values"][j].is_boolean()
              ? static_cast<double>(expected["values"][j].get<bool>())
              : expected["values"][j].get<double>();
      near += std::abs(got[static_cast<size_t>(places[j])] - value) < reach;
    }
    if (static_cast<double>(near) >=
        share * static_cast<double>(places.size())) {
      return "";
    }
    return absl::StrCat("only ", near, " of ", places.size(),
                        " elements are near enough");
  }

 private:
  int Size(int sample, const char* what) const {
    return static_cast<int>(
        json_["samples"][static_cast<size_t>(sample)][what].size());
  }
  nlohmann::json Entry(int sample, const char* what, int i) const {
    return json_["samples"][static_cast<size_t>(sample)][what]
                [static_cast<size_t>(i)];
  }

  // Where the recorded values stand.
  static std::vector<int64_t> Places(int64_t n) {
    std::vector<int64_t> places;
    for (int64_t j = 0; j < std::min<int64_t>(n, 512); ++j) {
      places.push_back(n <= 512 ? j : j * n / 512 + 31 * j * j % (n / 512));
    }
    return places;
  }

  static std::string FloatDisagreement(const nlohmann::json& expected,
                                       const std::vector<double>& got) {
    const double most = expected["absmax"];
    const double allowed =
        expected["compare"]["rel"].get<double>() * std::max(most, 0.001);
    double absmax = 0, sum = 0, difference = 0;
    int64_t nonfinite = 0;
    for (const double value : got) {
      if (!std::isfinite(value)) {
        ++nonfinite;
        continue;
      }
      absmax = std::max(absmax, std::abs(value));
      sum += value;
    }
    const std::vector<int64_t> places =
        Places(static_cast<int64_t>(got.size()));
    for (size_t j = 0; j < places.size(); ++j) {
      const nlohmann::json& value = expected["values"][j];
      if (!value.is_number()) continue;
      const double error =
          std::abs(got[static_cast<size_t>(places[j])] - value.get<double>());
      // Written so that NaN counts as a difference.
      if (!(error <= difference)) difference = error;
    }
    const double n = std::max<double>(1, static_cast<double>(got.size()));
    if (nonfinite != expected["nonfinite"].get<int64_t>()) {
      return absl::StrCat(nonfinite, " values are not finite, not ",
                          expected["nonfinite"].get<int64_t>());
    }
    if (!(difference <= allowed) || !(std::abs(absmax - most) <= allowed) ||
        !(std::abs(sum - expected["sum"].get<double>()) / n <= allowed)) {
      return absl::StrCat("values differ by ", difference, ", allowed are ",
                          allowed, "; absmax ", absmax, " for ", most, ", sum ",
                          sum, " for ", expected["sum"].get<double>());
    }
    return "";
  }

  static std::vector<double> Fill(const nlohmann::json& fill,
                                  const runtime::Shape& shape, bool is_float) {
    const std::string kind = fill["kind"];
    if (kind == "image") return Picture(fill, shape, is_float);
    const double lo = fill.value("lo", 0.0), hi = fill.value("hi", 0.0);
    std::vector<double> values(static_cast<size_t>(shape.num_elements()));
    uint32_t x = fill.value("seed", uint32_t{0});
    for (size_t i = 0; i < values.size(); ++i) {
      if (kind == "lcg") {
        x = 1664525u * x + 1013904223u;
        const double u = (x >> 8) / 16777216.0;
        values[i] =
            is_float ? lo + (hi - lo) * u : lo + std::floor(u * (hi - lo + 1));
      } else if (kind == "triangle") {
        const auto period = fill["period"].get<int64_t>();
        const int64_t m = static_cast<int64_t>(i) % period;
        const double u = 2.0 * static_cast<double>(std::min(m, period - m)) /
                         static_cast<double>(period);
        const double v = lo + (hi - lo) * u;
        values[i] = is_float ? v : std::floor(v + 0.5);
      } else if (kind == "range") {
        values[i] = fill["start"].get<double>() + static_cast<double>(i);
      } else {
        values[i] = fill["value"].is_boolean()
                        ? static_cast<double>(fill["value"].get<bool>())
                        : fill["value"].get<double>();
      }
    }
    return values;
  }

  static std::vector<double> Picture(const nlohmann::json& fill,
                                     const runtime::Shape& shape,
                                     bool is_float) {
    static const auto* const pictures = new runtime::Tensor(
        runtime::Tensor::FromProto(
            formats::LoadNpy(
                TestDataPath("images/imagenet_300_crop_128_u8.npy"))
                .value())
            .value());
    const bool is_nchw = fill["layout"] == "NCHW";
    const double lo = fill["lo"], hi = fill["hi"];
    const int64_t height = shape.dim(is_nchw ? 2 : 1);
    const int64_t width = shape.dim(is_nchw ? 3 : 2);
    const int64_t channels = shape.dim(is_nchw ? 1 : 3);
    const int64_t batch = shape.dim(0);
    const int64_t plane = height * width * channels;
    const uint8_t* from = pictures->data<uint8_t>() +
                          fill["index"].get<int64_t>() * 128 * 128 * 3;
    std::vector<double> values(static_cast<size_t>(batch * plane));
    for (int64_t i = 0; i < batch * plane; ++i) {
      const int64_t at = i % plane;
      const int64_t c = is_nchw ? at / (height * width) : at % channels;
      const int64_t pixel = is_nchw ? at % (height * width) : at / channels;
      const int64_t y = 128 * (pixel / width) / height;
      const int64_t x = 128 * (pixel % width) / width;
      const double v = from[(y * 128 + x) * 3 + c];
      const double value = lo + (hi - lo) * v / 255;
      values[static_cast<size_t>(i)] =
          is_float ? value : std::floor(value + 0.5);
    }
    return values;
  }

  nlohmann::json json_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_GOLDEN_INTERCHANGE_CASE_H_
