// The runtime against TensorFlow's recorded answers for hundreds of small
// graphs, which together use two hundred ops.

#include "tests/golden/op_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/half.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "engine/runtime/session/session.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::OpCorpus;
using ::optfarm::testing::OpCorpusCase;
using ::optfarm::testing::RecordedTensor;
using ::optfarm::testing::RecordedTensors;

// Graphs whose answers are drawn at random: only types and shapes must agree.
using Names = std::map<std::string, const char*>;
const Names& RandomCases() {
  static const auto* const names = new Names{
      {"random_gamma/rank1_float32", "RandomGamma"},
      {"random_poisson/rank1_float32", "RandomPoissonV2"},
      {"random_poisson_v2/rank1_float16", "RandomPoissonV2"},
      {"random_poisson_v2/rank1_float32", "RandomPoissonV2"},
  };
  return *names;
}

// Graphs that do not agree, and why.
const Names& Exceptions() {
  static const auto* const names = new Names{};
  return *names;
}

// A tensor from what was printed.
absl::StatusOr<Tensor> FromRecorded(const RecordedTensor& recorded,
                                    DataType dtype) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(recorded.shape));
  if (static_cast<int64_t>(recorded.elements.size()) != shape.num_elements()) {
    return absl::DataLossError("the recorded elements do not fill the shape");
  }
  if (dtype == tensorflow::DT_STRING) {
    return Tensor::FromValues<std::string>(shape, recorded.elements);
  }
  std::vector<double> values(recorded.elements.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = recorded.Number(i);
  tensorflow::NodeDef cast;
  cast.set_op("Cast");
  graph::SetType(&cast, "SrcT", tensorflow::DT_DOUBLE);
  graph::SetType(&cast, "DstT", dtype);
  const Tensor wide = Tensor::FromValues<double>(shape, values);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                           EvaluateNode(cast, {wide}, 1));
  return outputs[0];
}

// The elements as numbers.
absl::StatusOr<std::vector<double>> Numbers(const Tensor& tensor) {
  if (tensor.dtype() == tensorflow::DT_DOUBLE) {
    const auto flat = tensor.flat<double>();
    return std::vector<double>(flat.begin(), flat.end());
  }
  tensorflow::NodeDef cast;
  cast.set_op("Cast");
  graph::SetType(&cast, "SrcT", tensor.dtype());
  graph::SetType(&cast, "DstT", tensorflow::DT_DOUBLE);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                           EvaluateNode(cast, {tensor}, 1));
  return Numbers(outputs[0]);
}

bool IsInexact(DataType dtype) {
  return dtype == tensorflow::DT_FLOAT || dtype == tensorflow::DT_DOUBLE ||
         IsHalf(dtype);
}

// OK, or how the tensor differs from TensorFlow's: floats may differ by 1e-4
// of the largest magnitude, and by the last digit that was printed.
absl::Status CheckAgrees(const Tensor& got, const RecordedTensor& expected,
                         bool values_too) {
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape, Shape::FromDims(expected.shape));
  if (!(got.shape() == shape)) {
    return absl::InternalError(absl::StrCat("shape ", got.shape().ToString(),
                                            ", but TensorFlow's is ",
                                            shape.ToString()));
  }
  if (!values_too) return absl::OkStatus();
  if (expected.elements.size() != static_cast<size_t>(got.num_elements())) {
    return absl::DataLossError("the recorded elements do not fill the shape");
  }
  const auto differs = [&](size_t i, const auto& value) {
    return absl::InternalError(
        absl::StrCat("element ", i, " is ", value, ", but TensorFlow's is ",
                     expected.elements[i], " (", got.DebugString(), ")"));
  };
  if (got.dtype() == tensorflow::DT_STRING) {
    for (size_t i = 0; i < expected.elements.size(); ++i) {
      if (got.data<std::string>()[i] != expected.elements[i]) {
        return differs(i, got.data<std::string>()[i]);
      }
    }
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<double> values, Numbers(got));
  double magnitude = 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double size = std::abs(expected.Number(i));
    if (std::isfinite(size)) magnitude = std::max(magnitude, size);
  }
  const double bound = IsInexact(got.dtype()) ? 1e-4 * magnitude + 1e-8 : 0.0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double want = expected.Number(i);
    const bool agrees = std::isnan(want) ? std::isnan(values[i])
                        : std::isinf(want)
                            ? values[i] == want
                            : std::abs(values[i] - want) <= bound;
    if (!agrees) return differs(i, values[i]);
  }
  return absl::OkStatus();
}

// The graph runs with its recorded inputs; the tensors `wanted` come back.
absl::StatusOr<std::vector<Tensor>> RunCase(const OpCorpusCase& entry,
                                            const RecordedTensors& wanted) {
  tensorflow::GraphDef def;
  if (!def.ParseFromString(entry.graph)) {
    return absl::DataLossError("the graph does not parse");
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph graph,
                           graph::Graph::FromDef(std::move(def)));
  std::vector<graph::TensorName> feeds;
  std::vector<Tensor> inputs;
  for (const auto& [name, recorded] : entry.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(const graph::TensorName feed,
                             graph::ParseTensorName(name));
    OPTFARM_ASSIGN_OR_RETURN(const graph::Endpoint end, graph.Resolve(feed));
    OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                             graph::GetTypeOr(graph.node(end.node).def(),
                                              "dtype", tensorflow::DT_FLOAT));
    OPTFARM_ASSIGN_OR_RETURN(Tensor input, FromRecorded(recorded, dtype));
    feeds.push_back(feed);
    inputs.push_back(std::move(input));
  }
  std::vector<graph::TensorName> fetches;
  for (const auto& [name, recorded] : wanted) {
    OPTFARM_ASSIGN_OR_RETURN(const graph::TensorName fetch,
                             graph::ParseTensorName(name));
    fetches.push_back(fetch);
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(graph, feeds, fetches));
  return session->Run(inputs);
}

absl::Status CheckCase(const OpCorpusCase& entry, bool values_too) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                           RunCase(entry, entry.outputs));
  size_t i = 0;
  for (const auto& [name, expected] : entry.outputs) {
    const absl::Status status = CheckAgrees(outputs[i++], expected, values_too);
    if (!status.ok()) return Annotate(status, name);
  }
  return absl::OkStatus();
}

// Tensors in between that differ, each computed alone: where to look first.
std::string Diagnose(const OpCorpusCase& entry) {
  std::string text;
  int lines = 0;
  for (const auto& [name, expected] : entry.between) {
    const RecordedTensors one{{name, expected}};
    const auto got = RunCase(entry, one);
    absl::Status status = got.status();
    if (got.ok()) status = CheckAgrees((*got)[0], expected, true);
    if (status.ok()) continue;
    absl::StrAppend(&text, "\n    ", name, ": ", status.message());
    if (++lines == 12) break;
  }
  return text;
}

TEST(OpCorpusTest, GraphsAgreeWithTensorFlow) {
  OPTFARM_REQUIRE_TEST_DATA();
  OPTFARM_ASSERT_OK_AND_ASSIGN(const OpCorpus corpus,
                               testing::ReadOpCorpus(testing::TestDataPath(
                                   "op_corpus/tf_op_corpus.tar.gz")));
  ASSERT_EQ(corpus.size(), 498u);
  const char* only = std::getenv("OPTFARM_OP_CORPUS_CASE");
  int agreeing = 0;
  for (const auto& [name, entry] : corpus) {
    if (only != nullptr && name.find(only) == std::string::npos) continue;
    ASSERT_FALSE(entry.outputs.empty()) << name;
    const bool is_random = RandomCases().count(name) > 0;
    const bool is_exception = Exceptions().count(name) > 0;
    const absl::Status status = CheckCase(entry, !is_random);
    agreeing += status.ok() && !is_random ? 1 : 0;
    if (is_exception && status.ok()) {
      ADD_FAILURE() << name << " agrees: take it off the exceptions";
    }
    if (!is_exception && !status.ok()) {
      ADD_FAILURE() << name << ": " << status.message()
                    << (only != nullptr ? Diagnose(entry) : "");
    }
  }
  if (only != nullptr) return;
  const int judged = static_cast<int>(corpus.size() - RandomCases().size());
  RecordProperty("agreeing", agreeing);
  RecordProperty("judged", judged);
  EXPECT_GE(agreeing, 0.97 * judged);
  for (const Names* names : {&RandomCases(), &Exceptions()}) {
    for (const auto& [name, reason] : *names) {
      EXPECT_TRUE(corpus.count(name) > 0) << name << " is not in the corpus";
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime
