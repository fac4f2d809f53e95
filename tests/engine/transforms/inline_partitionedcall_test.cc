#include <google/protobuf/text_format.h>

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

tensorflow::AttrValue Function(const std::string& name) {
  tensorflow::AttrValue value;
  value.mutable_func()->set_name(name);
  return value;
}

tensorflow::AttrValue Floats(int count) {
  tensorflow::AttrValue types;
  types.mutable_list();
  for (int i = 0; i < count; ++i) {
    types.mutable_list()->add_type(tensorflow::DT_FLOAT);
  }
  return types;
}

Attrs CallAttrs(const std::string& function, int inputs, int outputs) {
  return {{"f", Function(function)},
          {"Tin", Floats(inputs)},
          {"Tout", Floats(outputs)}};
}

void AddFunction(GraphBuilder* b, const std::string& text) {
  tensorflow::FunctionDef* function =
      b->mutable_def()->mutable_library()->add_function();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, function))
      << text;
}

std::string Args(const std::string& kind,
                 const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += kind + " { name: '" + name + "' type: DT_FLOAT } ";
  }
  return text;
}

std::string Signature(const std::string& name,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
  return "signature { name: '" + name + "' " + Args("input_arg", inputs) +
         Args("output_arg", outputs) + "} ";
}

std::string Body(const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs,
                 const std::string& attrs = "") {
  std::string text = "node_def { name: '" + name + "' op: '" + op + "' ";
  for (const std::string& input : inputs) text += "input: '" + input + "' ";
  return text + "attr { key: 'T' value { type: DT_FLOAT } } " + attrs + "} ";
}

std::string Ret(const std::string& output, const std::string& tensor) {
  return "ret { key: '" + output + "' value: '" + tensor + "' } ";
}

// f(a, b) = relu(a + b), a
void AddSum(GraphBuilder* b) {
  AddFunction(b, Signature("f", {"a", "b"}, {"y", "z"}) +
                     Body("add", "Add", {"a", "b"}) +
                     Body("relu", "Relu", {"add:z:0", "^add"}) +
                     Ret("y", "relu:activations:0") + Ret("z", "a"));
}

TEST(InlinePartitionedcallTest, PutsTheBodyInPlaceOfTheCall) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Floats("w", {2}, {1, 2});
  b.Node("call", "PartitionedCall", {"x", "w"}, CallAttrs("f", 2, 2));
  b.Node("out", "Mul", {"call", "call:1"}, FloatT());
  AddSum(&b);
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "inline_partitionedcall", "x", "out");
  EXPECT_EQ(report.nodes_changed, 1);
  EXPECT_THAT(Names(graph),
              ElementsAre("x", "w", "call/add", "call/relu", "out"));
  EXPECT_EQ(Show(graph, "call/add"), "Add(x, w)");
  EXPECT_EQ(Show(graph, "call/relu"), "Relu(call/add, ^call/add)");
  EXPECT_EQ(Show(graph, "out"), "Mul(call/relu, x)");
  EXPECT_EQ(graph.library().function_size(), 1);
}

TEST(InlinePartitionedcallTest, InlinesCallsInsideOfFunctions) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("call", "StatefulPartitionedCall", {"x"}, CallAttrs("outer", 1, 1));
  b.Node("out", "Relu", {"call"}, FloatT());
  AddSum(&b);
  AddFunction(
      &b, Signature("outer", {"a"}, {"y"}) +
              Body("inner", "PartitionedCall", {"a", "a"},
                   "attr { key: 'f' value { func { name: 'f' } } } "
                   "attr { key: 'Tin' value { list { type: [DT_FLOAT, "
                   "DT_FLOAT] } } } attr { key: 'Tout' value { list { type: "
                   "[DT_FLOAT, DT_FLOAT] } } } ") +
              Body("sub", "Sub", {"inner:output:0", "inner:output:1"}) +
              Ret("y", "sub:z:0"));
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "inline_partitionedcall", "x", "out");
  EXPECT_EQ(report.nodes_changed, 2);
  EXPECT_EQ(Show(graph, "call/inner/add"), "Add(x, x)");
  EXPECT_EQ(Show(graph, "call/sub"), "Sub(call/inner/relu, x)");
  EXPECT_EQ(Show(graph, "out"), "Relu(call/sub)");
  EXPECT_THAT(
      testing::Run(graph, "x", Tensor::FromValues<float>({2}, {1, -3}), "out"),
      ElementsAre(1, 3));
}

// TensorFlow takes the index within the output argument for the port.
TEST(InlinePartitionedcallTest, FindsPortsByTheNamesOfOutputs) {
  GraphBuilder b;
  b.Placeholder("x", {4});
  b.Node("call", "PartitionedCall", {"x"}, CallAttrs("f", 1, 1));
  b.Node("out", "Relu", {"call"}, FloatT());
  AddFunction(
      &b, Signature("f", {"a"}, {"y"}) +
              Body("k", "Const", {},
                   "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: "
                   "'value' value { tensor { dtype: DT_INT32 tensor_shape {} "
                   "int_val: 2 } } } ") +
              Body("top", "TopKV2", {"a", "k:output:0"}) +
              Body("as_float", "Cast", {"top:indices:0"},
                   "attr { key: 'SrcT' value { type: DT_INT32 } } attr { key: "
                   "'DstT' value { type: DT_FLOAT } } ") +
              Ret("y", "as_float:y:0"));
  Graph graph = b.Build();
  MustApply(&graph, "inline_partitionedcall", "x", "out");
  EXPECT_EQ(Show(graph, "call/as_float"), "Cast(call/top:1)");
}

TEST(InlinePartitionedcallTest, CarriesControlEdges) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("start", "NoOp", {});
  b.Node("call", "PartitionedCall", {"x", "x", "^start"}, CallAttrs("f", 2, 2));
  b.Node("after", "NoOp", {"^call"});
  b.Node("out", "Add", {"call", "call:1", "^after"}, FloatT());
  AddSum(&b);
  Graph graph = b.Build();
  MustApply(&graph, "inline_partitionedcall", "x", "out");
  EXPECT_EQ(Show(graph, "call/add"), "Add(x, x, ^start)");
  EXPECT_EQ(Show(graph, "call/relu"), "Relu(call/add, ^call/add)");
  // Who waits for the call waits for its results.
  EXPECT_EQ(Show(graph, "call"), "NoOp(^start, ^call/relu, ^x)");
  EXPECT_EQ(Show(graph, "after"), "NoOp(^call)");
  EXPECT_EQ(Show(graph, "out"), "Add(call/relu, x, ^after, ^start)");
}

TEST(InlinePartitionedcallTest, RunsWhatTheFunctionSaysHasToRun) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("call", "StatefulPartitionedCall", {"x"}, CallAttrs("f", 1, 1));
  b.Node("out", "Relu", {"call"}, FloatT());
  AddFunction(&b, Signature("f", {"a"}, {"y"}) +
                      Body("print", "Print", {"a", "a"},
                           "attr { key: 'U' value { list { type: DT_FLOAT } } "
                           "} ") +
                      Body("relu", "Relu", {"a"}) +
                      Ret("y", "relu:activations:0") +
                      "control_ret { key: 'p' value: 'print' }");
  Graph graph = b.Build();
  MustApply(&graph, "inline_partitionedcall strip_unused_nodes", "x", "out");
  EXPECT_EQ(Show(graph, "out"), "Relu(call/relu, ^call/print)");
}

TEST(InlinePartitionedcallTest, KeepsTheNameOfAnOutput) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Node("call", "PartitionedCall", {"x", "x"}, CallAttrs("f", 2, 2));
  AddSum(&b);
  Graph graph = b.Build();
  MustApply(&graph, "inline_partitionedcall", "x", "call:0,call:1");
  EXPECT_EQ(Show(graph, "call"), "IdentityN(call/relu, x)");
  EXPECT_THAT(testing::Run(graph, "x", Tensor::FromValues<float>({2}, {1, -3}),
                           "call:1"),
              ElementsAre(1, -3));
}

TEST(InlinePartitionedcallTest, GivesAttributesTheCallsValues) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  Attrs attrs = CallAttrs("f", 2, 1);
  (*attrs["f"].mutable_func()->mutable_attr())["T"] =
      TypeAttr(tensorflow::DT_FLOAT);
  (*attrs["f"].mutable_func()->mutable_attr())["N"] = IntAttr(2);
  b.Node("call", "PartitionedCall", {"x", "x"}, attrs);
  b.Node("out", "Relu", {"call"}, FloatT());
  AddFunction(&b,
              "signature { name: 'f' input_arg { name: 'a' type_attr: 'T' "
              "number_attr: 'N' } output_arg { name: 'y' type_attr: 'T' } "
              "attr { name: 'T' type: 'type' } attr { name: 'N' type: 'int' } "
              "} node_def { name: 'add' op: 'Add' input: 'a:1' input: 'a' "
              "attr { key: 'T' value { placeholder: 'T' } } } " +
                  Ret("y", "add:z:0"));
  Graph graph = b.Build();
  MustApply(&graph, "inline_partitionedcall", "x", "out");
  EXPECT_EQ(graph.node(graph.Find("call/add")).FindAttr("T")->type(),
            tensorflow::DT_FLOAT);
}

TEST(InlinePartitionedcallTest, SaysWhatIsWrong) {
  const auto error = [](const std::string& function, const Attrs& attrs) {
    GraphBuilder b;
    b.Placeholder("x", {2});
    b.Node("call", "PartitionedCall", {"x"}, attrs);
    b.Node("out", "Relu", {"call"}, FloatT());
    if (!function.empty()) AddFunction(&b, function);
    Graph graph = b.Build();
    PipelineOptions options;
    options.verify = false;
    return Apply(&graph, "inline_partitionedcall", "x", "out", options)
        .status();
  };
  EXPECT_THAT(error("", CallAttrs("g", 1, 1)),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("'g' is not in the library")));
  EXPECT_THAT(error("", {}), StatusIs(absl::StatusCode::kNotFound,
                                      HasSubstr("no attribute 'f'")));
  EXPECT_THAT(error(Signature("f", {"a", "b"}, {}), CallAttrs("f", 1, 0)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("called with 1 inputs and takes 2")));
  EXPECT_THAT(error(Signature("f", {"a"}, {"y"}), CallAttrs("f", 1, 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nothing is returned as its output 'y'")));
  EXPECT_THAT(error(Signature("f", {"a"}, {}) + Body("r", "Relu", {"c:x:0"}),
                    CallAttrs("f", 1, 0)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'r': 'c' is neither")));
  EXPECT_THAT(error(Signature("f", {"a"}, {}), CallAttrs("f", 1, 0)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'out' reads its output 0")));
  EXPECT_THAT(
      error(Signature("f", {"a"}, {"y"}) + Ret("y", "a:7"),
            CallAttrs("f", 1, 1)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no tensor of")));
  // A function that calls itself.
  EXPECT_THAT(
      error(Signature("f", {"a"}, {"y"}) +
                Body("again", "PartitionedCall", {"a"},
                     "attr { key: 'f' value { func { name: 'f' } } } attr { "
                     "key: 'Tin' value { list { type: DT_FLOAT } } } attr { "
                     "key: 'Tout' value { list { type: DT_FLOAT } } } ") +
                Ret("y", "again:output:0"),
            CallAttrs("f", 1, 1)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("call itself?")));
}

TEST(InlinePartitionedcallTest, RefusesACallThatReadsItself) {
  GraphBuilder b;
  b.Node("call", "PartitionedCall", {"call"}, CallAttrs("f", 1, 1));
  b.Node("out", "Relu", {"call"}, FloatT());
  AddFunction(&b, Signature("f", {"a"}, {"y"}) + Ret("y", "a"));
  Graph graph = b.Build();
  PipelineOptions options;
  options.verify = false;
  EXPECT_THAT(
      Apply(&graph, "inline_partitionedcall", "", "out", options).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("its own output")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
