// Real quantized models through the other format and back: scales, zero points
// and 8-bit weights keep their bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/export/convert_file.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::exporting {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::TestDataPath;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The constant that a node's input reads; one without value for others.
runtime::Tensor ConstantAt(const graph::Graph& graph, graph::NodeId id,
                           size_t input) {
  const graph::Node& reader = graph.node(id);
  if (input >= reader.inputs().size()) return {};
  const graph::Node& node = graph.node(reader.inputs()[input].node);
  const auto* value = node.FindAttr("value");
  if (node.op() != "Const" || value == nullptr) return {};
  auto tensor = runtime::Tensor::FromProto(value->tensor());
  return tensor.ok() ? *std::move(tensor) : runtime::Tensor();
}

std::string BitsOf(const runtime::Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()),
          static_cast<size_t>(tensor.TotalBytes())};
}

// Of 8-bit values as int8: a format may hold unsigned ones so.
std::string SignedBitsOf(const runtime::Tensor& tensor) {
  std::string bits = BitsOf(tensor);
  if (tensor.dtype() == tensorflow::DT_UINT8) {
    for (char& c : bits) c = static_cast<char>(c ^ 0x80);
  }
  return bits;
}

// What a model says of its quantized values.
struct Quantization {
  // Scale and zero point of computed values.
  std::set<std::pair<std::string, std::string>> values;
  // Of 8-bit weights: scales, zero points, and the values, sorted, because
  // formats hold axes in other orders. Writers share those that are alike.
  std::set<std::vector<std::string>> weights;
};

absl::StatusOr<Quantization> QuantizationOf(const std::string& path) {
  auto file = formats::LoadModel(path);
  if (!file.ok()) return file.status();
  auto graph = graph::Graph::FromDef(std::move(file->def));
  if (!graph.ok()) return graph.status();
  Quantization result;
  for (const graph::NodeId id : graph->Ids()) {
    const std::string& op = graph->node(id).op();
    if (op != "QuantizeLinear" && op != "DequantizeLinear") continue;
    const runtime::Tensor scale = ConstantAt(*graph, id, 1);
    const runtime::Tensor zero = ConstantAt(*graph, id, 2);
    if (!scale.has_value() || !zero.has_value()) continue;
    if (zero.dtype() != tensorflow::DT_INT8 &&
        zero.dtype() != tensorflow::DT_UINT8) {
      continue;
    }
    const runtime::Tensor constant = ConstantAt(*graph, id, 0);
    if (op == "QuantizeLinear" || !constant.has_value()) {
      result.values.emplace(BitsOf(scale), SignedBitsOf(zero));
      continue;
    }
    std::string sorted = SignedBitsOf(constant);
    std::sort(sorted.begin(), sorted.end());
    result.weights.insert({BitsOf(scale), SignedBitsOf(zero), sorted});
  }
  return result;
}

// What `has` lacks, by the numbers of scales and values.
std::vector<std::string> LostWeights(const Quantization& had,
                                     const Quantization& has) {
  std::vector<std::string> lost;
  for (const auto& weights : had.weights) {
    if (has.weights.contains(weights)) continue;
    lost.push_back(absl::StrCat(weights[0].size() / sizeof(float),
                                " scales and ", weights[2].size(), " values"));
  }
  return lost;
}

struct RoundTrip {
  const char* file;
};

class QuantizedRoundTripTest : public ::testing::TestWithParam<RoundTrip> {};

TEST_P(QuantizedRoundTripTest, KeepsScalesZeroPointsWeightsAndAnswers) {
  OPTFARM_REQUIRE_TEST_DATA();
  const std::string name = GetParam().file;
  const bool is_onnx = absl::EndsWith(name, ".onnx");
  const std::string folder = testing::FreshFolder();
  const std::string original =
      TestDataPath(absl::StrCat("interchange/models/", name));
  const std::string other =
      absl::StrCat(folder, is_onnx ? "/other.tflite" : "/other.onnx");
  const std::string back =
      absl::StrCat(folder, is_onnx ? "/back.onnx" : "/back.tflite");
  ConvertOptions there, again;
  again.compare = false;
  there.written.format = is_onnx ? ModelFormat::kTflite : ModelFormat::kOnnx;
  again.written.format = is_onnx ? ModelFormat::kOnnx : ModelFormat::kTflite;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string line,
                               ConvertFile(original, other, there));
  EXPECT_THAT(line, HasSubstr("elements of the answers are equal"));
  ASSERT_THAT(ConvertFile(other, back, again), IsOk());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Quantization had,
                               QuantizationOf(original));
  EXPECT_FALSE(had.values.empty());
  EXPECT_FALSE(had.weights.empty());
  for (const std::string& path : {other, back}) {
    SCOPED_TRACE(path);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Quantization has, QuantizationOf(path));
    EXPECT_THAT(LostWeights(had, has), IsEmpty());
    int lost = 0;
    for (const auto& value : had.values) lost += !has.values.contains(value);
    EXPECT_EQ(lost, 0) << "of " << had.values.size()
                       << " pairs of scale and zero point";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, QuantizedRoundTripTest,
    ::testing::Values(RoundTrip{"onnx/micro_kws_qdq.onnx"},
                      RoundTrip{"tflite/ad01_int8.tflite"},
                      RoundTrip{"tflite/aieq_conv_fc_srq.tflite"},
                      RoundTrip{"tflite/blazeface_int8.tflite"},
                      RoundTrip{"tflite/dbface_int8.tflite"},
                      RoundTrip{"tflite/deeplab_dm05_quant.tflite"},
                      RoundTrip{"tflite/facemesh_int8.tflite"},
                      RoundTrip{"tflite/hand_landmark_int8.tflite"},
                      RoundTrip{"tflite/hello_world_int8.tflite"},
                      RoundTrip{"tflite/hps_74ops.tflite"},
                      RoundTrip{"tflite/kws_ref_model.tflite"},
                      RoundTrip{"tflite/magic_wand.tflite"},
                      RoundTrip{"tflite/micro_speech.tflite"},
                      RoundTrip{"tflite/mobilenet_v1_025_128_quant.tflite"},
                      RoundTrip{"tflite/mobilenet_v2_quant.tflite"},
                      RoundTrip{"tflite/resnet8_int8.tflite"},
                      RoundTrip{"tflite/stm_fdmobilenet.tflite"},
                      RoundTrip{"tflite/stm_mnv1_05_flowers.tflite"},
                      RoundTrip{"tflite/stm_mnv2_035_flowers.tflite"},
                      RoundTrip{"tflite/stm_yamnet256.tflite"},
                      RoundTrip{"tflite/style_transfer_q.tflite"},
                      RoundTrip{"tflite/vww_96_int8.tflite"},
                      RoundTrip{"tflite/yolov5n_int8.tflite"},
                      RoundTrip{"tflite/yunet_fullint.tflite"}),
    [](const ::testing::TestParamInfo<RoundTrip>& test) {
      std::string name = test.param.file;
      for (char& c : name) {
        if (!absl::ascii_isalnum(c)) c = '_';
      }
      return name;
    });

}  // namespace
}  // namespace optfarm::exporting
