// optctl graph convert: formats by the end of a file's name, what it prints and
// how it fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/files.h"
#include "tests/client_cli/tool_test.h"

namespace optfarm::client_cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// sum = relu(x + (1, -2))
constexpr char kModel[] = R"(
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 1 } dim { size: 2 } } } } }
  node { name: "w" op: "Const"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT
      tensor_shape { dim { size: 2 } } float_val: 1 float_val: -2 } } } }
  node { name: "sum" op: "Add" input: "x" input: "w"
    attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "y" op: "Relu" input: "sum"
    attr { key: "T" value { type: DT_FLOAT } } }
)";

// No format but TensorFlow's has this op.
constexpr char kOwnOp[] = R"(
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: 2 } dim { size: 2 } } } } }
  node { name: "turned" op: "MatrixInverse" input: "x"
    attr { key: "T" value { type: DT_FLOAT } } }
)";

class GraphConvertTest : public ToolTest {
 protected:
  int Convert(const std::string& from, const std::string& to,
              std::vector<std::string> flags = {}) {
    std::vector<std::string> words = {"graph", "convert", "--in_graph=" + from,
                                      "--out_graph=" + to};
    words.insert(words.end(), flags.begin(), flags.end());
    return Run("optctl", words);
  }
};

TEST_F(GraphConvertTest, GoesRoundByTheEndsOfNames) {
  const std::string model = Write("m.pbtxt", kModel);
  EXPECT_EQ(Convert(model, "m.onnx"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("m.onnx: onnx (opset 17)"));
  EXPECT_EQ(Convert("m.onnx", "m.tflite"), 0) << output_;
  EXPECT_THAT(output_, HasSubstr("m.tflite: tflite"));
  EXPECT_EQ(Convert("m.tflite", "m.pb"), 0) << output_;
  EXPECT_EQ(Convert("m.pb", "again.onnx", {"--opset=13", "--verify=no"}), 0)
      << output_;
  EXPECT_THAT(output_, HasSubstr("again.onnx: onnx (opset 13)"));
  const auto lite = ReadFile(Path("m.tflite"));
  ASSERT_TRUE(lite.ok());
  EXPECT_EQ(lite->substr(4, 4), "TFL3");
}

TEST_F(GraphConvertTest, RefusesWithTheNodeAndWritesNothing) {
  const std::string model = Write("own.pbtxt", kOwnOp);
  for (const std::string to : {"own.onnx", "own.tflite"}) {
    EXPECT_EQ(Convert(model, to), 2) << to;
    EXPECT_THAT(output_,
                AllOf(HasSubstr("turned"), HasSubstr("MatrixInverse")));
    EXPECT_FALSE(Exists(Path(to)));
  }
}

TEST_F(GraphConvertTest, NamesTheFlagThatIsWrong) {
  const std::string model = Write("m.pbtxt", kModel);
  EXPECT_EQ(Convert(model, "m.txt"), 2);
  EXPECT_THAT(output_, AllOf(HasSubstr("--out_graph"), HasSubstr(".tflite")));
  EXPECT_EQ(Convert(model, "m.onnx", {"--opset=5"}), 2);
  EXPECT_THAT(output_, HasSubstr("--opset"));
  EXPECT_EQ(Convert(model, "m.tflite", {"--io_type=int4"}), 2);
  EXPECT_THAT(output_, HasSubstr("--io_type"));
  EXPECT_EQ(Convert("missing.pb", "m.onnx"), 2);
  EXPECT_THAT(output_, HasSubstr("missing.pb"));
  EXPECT_FALSE(Exists(Path("m.onnx")));
}

}  // namespace
}  // namespace optfarm::client_cli
