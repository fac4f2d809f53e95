// What holds for every transform of the catalog, and for every name that one
// makes: versions and library are kept, names never collide, and no graph,
// however damaged, stops the process.

#include <pthread.h>

#include <functional>

#include "absl/strings/str_cat.h"
#include "engine/transforms/freezing/freeze_ranges.h"
#include "engine/transforms/machinery/catalog.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::HasSubstr;

// The transform with the parameters that it cannot do without.
TransformStep MinimalStep(const TransformDef& def) {
  const std::map<std::string, std::string> values = {
      {"op", "Identity"},
      {"attribute_name", "_note"},
      {"old_attribute_name", "_note"},
      {"new_attribute_name", "_remark"},
      {"old_op_name", "Relu6"},
      {"new_op_name", "Relu"},
      {"old_node_name", "relu"},
      {"new_node_name", "renamed"},
      {"node", "in"},
      {"name", "in"},
      {"value", "0"},
      {"batch", "2"},
      {"batch_size", "2"},
      {"size", "2"}};
  TransformStep step{def.name, {}};
  for (const ParameterDef& parameter : def.parameters) {
    if (!parameter.required) continue;
    const auto value = values.find(parameter.name);
    // A file that is not there is an error like any other.
    step.parameters.push_back(
        {parameter.name, value == values.end() ? "nowhere" : value->second});
  }
  return step;
}

// `run(step)` for every transform.
template <typename Run>
void ForEveryTransform(const Run& run) {
  for (const TransformDef& def : AllTransforms()) {
    SCOPED_TRACE(def.name);
    run(MinimalStep(def));
  }
}

absl::StatusOr<PipelineReport> ApplyStep(const TransformStep& step,
                                         const std::string& inputs,
                                         const std::string& outputs,
                                         Graph* graph, bool verify = true) {
  PipelineOptions options;
  options.verify = verify;
  return Apply(graph, PrintTransforms({step}), inputs, outputs, options);
}

GraphBuilder Convolution() {
  GraphBuilder b;
  b.Placeholder("in", {1, 4, 4, 2});
  b.Floats("w", {1, 1, 2, 2}, {1, 2, 3, 4});
  b.Conv2D("conv", "in", "w");
  b.Floats("bias", {2}, {1, 2});
  b.Node("biased", "BiasAdd", {"conv", "bias"}, FloatT());
  b.Node("relu", "Relu", {"biased"}, FloatT());
  b.Node("id", "Identity", {"relu"}, FloatT());
  b.Node("out", "Relu6", {"id"}, FloatT());
  return b;
}

TEST(EveryTransformTest, KeepsVersionsAndLibrary) {
  GraphBuilder b = Convolution();
  b.mutable_def()->mutable_versions()->set_producer(24);
  b.mutable_def()->mutable_versions()->set_min_consumer(3);
  b.mutable_def()->mutable_versions()->add_bad_consumers(7);
  b.mutable_def()
      ->mutable_library()
      ->add_function()
      ->mutable_signature()
      ->set_name("f");
  ForEveryTransform([&](const TransformStep& step) {
    Graph graph = b.Build();
    const auto report = ApplyStep(step, "in", "out", &graph);
    const tensorflow::GraphDef def = graph.ToDef();
    EXPECT_EQ(def.versions().SerializeAsString(),
              b.def().versions().SerializeAsString());
    EXPECT_EQ(def.library().SerializeAsString(),
              b.def().library().SerializeAsString());
    EXPECT_NE(graph.Find("out"), graph::kNoNode) << report.status();
  });
}

TEST(EveryTransformTest, KeepsTheFirstInputsPortAndSeveralOutputs) {
  GraphBuilder b;
  b.Placeholder("in", {4, 2});
  b.Ints("axis", {}, {0});
  b.Node("split", "Split", {"axis", "in"}, FloatT({{"num_split", IntAttr(2)}}));
  b.Node("id", "Identity", {"split:1"}, FloatT());
  b.Node("out", "Mul", {"id", "id"}, FloatT());
  ForEveryTransform([&](const TransformStep& step) {
    Graph graph = b.Build();
    if (!ApplyStep(step, "in", "out,split:1", &graph).ok()) return;
    // quantize_nodes rounds.
    if (step.name == "quantize_nodes") return;
    EXPECT_THAT(
        testing::Run(graph, "in", Wave({4, 2}), "out"),
        AllNear(testing::Run(b.Build(), "in", Wave({4, 2}), "out"), 1e-6f));
  });
}

// --- Names -------------------------------------------------------------------

// Adds constants of these names, which nothing else is about: 42, 43, ...
void Occupy(const std::vector<std::string>& names, GraphBuilder* b) {
  float value = 42;
  for (const std::string& name : names) b->Floats(name, {}, {value++});
}

void ExpectUntouched(const Graph& graph,
                     const std::vector<std::string>& names) {
  float value = 42;
  for (const std::string& name : names) {
    EXPECT_EQ(FloatsOf(graph, name), std::vector<float>{value++}) << name;
  }
}

TEST(NameCollisionTest, QuantizationTakesOtherNames) {
  const std::vector<std::string> names = {"out_eightbit/in/reshape_dims",
                                          "out_eightbit/in/reduction_dims",
                                          "out_eightbit/in/reshape",
                                          "out_eightbit/in/min",
                                          "out_eightbit/in/max",
                                          "out_eightbit/in/quantize",
                                          "out/eightbit",
                                          "out/eightbit/requant_range",
                                          "out/eightbit/requantize",
                                          "out/eightbit/fallback_min",
                                          "in_eightbit/min",
                                          "in_eightbit/dequantize",
                                          "bias_eightbit/quantize"};
  for (const char* transforms :
       {"quantize_nodes", "quantize_nodes(fallback_min=-1, fallback_max=1)",
        "quantize_nodes(input_min=-1, input_max=1)"}) {
    GraphBuilder b;
    b.Placeholder("in", {1, 2, 2, 2});
    b.Floats("bias", {2}, {1, 2});
    b.Node("out", "BiasAdd", {"in", "bias"}, FloatT());
    Occupy(names, &b);
    Graph graph = b.Build();
    EXPECT_EQ(MustApply(&graph, transforms, "in", "out").skipped.size(), 0u);
    ExpectUntouched(graph, names);
    EXPECT_THAT(Show(graph, "out"), HasSubstr("Dequantize(out/eightbit"));
  }
}

TEST(NameCollisionTest, FoldingAndFusingTakeOtherNames) {
  GraphBuilder b = Convolution();
  b.Ints("size", {2}, {3, 3});
  b.Node("resize", "ResizeBilinear", {"out", "size"}, FloatT());
  b.Floats("w2", {1, 1, 2, 1}, {1, 2});
  b.Conv2D("conv2", "resize", "w2");
  b.Floats("one", {1}, {1});
  b.Node("norm", "FusedBatchNorm", {"conv2", "one", "one", "one", "one"},
         FloatT({{"is_training", BoolAttr(false)}}));
  b.Floats("a", {}, {1});
  b.Node("b", "Neg", {"a"}, FloatT());
  b.Node("last", "Add", {"norm", "b"}, FloatT());
  const std::vector<std::string> names = {
      "conv2_bn_offset",   "conv2_dummy_paddings", "b/_0__cf__0",
      "w_quantized_const", "w_quantized_min",      "id__print__"};
  Occupy(names, &b);
  Graph graph = b.Build();
  const Tensor in = Wave({1, 4, 4, 2});
  const std::vector<float> before = testing::Run(graph, "in", in, "last");
  // Otherwise folding removes what nothing reads.
  const std::string outputs = absl::StrCat("last,", absl::StrJoin(names, ","));
  MustApply(&graph,
            "insert_logging(op=Identity, first_n=0) fold_old_batch_norms "
            "fuse_convolutions fold_constants quantize_weights(minimum_size=1)",
            "in", outputs);
  EXPECT_NE(graph.Find("conv2_bn_offset_1"), graph::kNoNode);
  EXPECT_NE(graph.Find("conv2_dummy_paddings_1"), graph::kNoNode);
  EXPECT_THAT(testing::Run(graph, "in", in, "last"), AllNear(before, 0.3f));
  float value = 42;
  for (const std::string& name : names) {
    EXPECT_THAT(testing::Run(graph, "in", in, name),
                AllNear(std::vector<float>{value++}, 1e-4f))
        << name;
  }
}

TEST(NameCollisionTest, FrozenRangesTakeOtherNames) {
  GraphBuilder b;
  b.Placeholder("q", {2}, tensorflow::DT_QINT32);
  b.Floats("low", {}, {-1});
  b.Floats("high", {}, {1});
  b.Node("range", "RequantizationRange", {"q", "low", "high"});
  b.Node("out", "Add", {"range", "range:1"}, FloatT());
  Occupy({"range/frozen_min", "range/frozen_max"}, &b);
  Graph graph = b.Build();
  OPTFARM_ASSERT_OK(FreezeRanges(&graph, {{"range", {{-2, 3}}}}));
  ExpectUntouched(graph, {"range/frozen_min", "range/frozen_max"});
  EXPECT_EQ(Show(graph, "out"), "Add(range/frozen_min_1, range/frozen_max_1)");
}

// --- Damaged and large graphs ------------------------------------------------

// Every transform ends, with or without an error.
void ApplyAll(const GraphBuilder& b, const std::string& inputs,
              const std::string& outputs) {
  const absl::StatusOr<Graph> graph = Graph::FromDef(b.def());
  if (!graph.ok()) return;
  for (const bool verify : {true, false}) {
    ForEveryTransform([&](const TransformStep& step) {
      Graph copy = graph->Clone();
      ApplyStep(step, inputs, outputs, &copy, verify).status().IgnoreError();
      // Still a graph, with the invariants of one.
      EXPECT_TRUE(Graph::FromDef(copy.ToDef()).ok());
    });
  }
}

void ShapeOf(GraphBuilder* b, const std::string& name,
             const std::vector<int64_t>& shape) {
  for (tensorflow::NodeDef& node : *b->mutable_def()->mutable_node()) {
    if (node.name() != name) continue;
    auto* tensor = (*node.mutable_attr())["value"].mutable_tensor();
    tensor->clear_tensor_shape();
    for (int64_t size : shape) {
      tensor->mutable_tensor_shape()->add_dim()->set_size(size);
    }
  }
}

TEST(DamagedGraphTest, EveryTransformBearsImpossibleTensors) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const std::vector<std::vector<int64_t>> shapes = {{kHuge, kHuge, 2, 2},
                                                    {-1, 1, 2, 2},
                                                    {1 << 20, 1 << 20, 2, 2},
                                                    {3, 1, 2, 2},
                                                    {0, 1, 2, 2},
                                                    {},
                                                    {1, 1, 2},
                                                    {1, 1, 2, 2, 1},
                                                    {INT64_MIN, 1, 1, 1}};
  for (const auto& shape : shapes) {
    GraphBuilder b = Convolution();
    ShapeOf(&b, "w", shape);
    ShapeOf(&b, "bias", shape);
    ApplyAll(b, "in", "out");
  }
}

TEST(DamagedGraphTest, EveryTransformBearsMissingAttributes) {
  GraphBuilder b = Convolution();
  b.Ints("block", {2}, {2, 2});
  b.Node("batch", "SpaceToBatchND", {"in", "block", "block"}, FloatT());
  b.Conv2D("atrous", "batch", "w");
  b.Node("space", "BatchToSpaceND", {"atrous", "block", "block"}, FloatT());
  b.Node("pad", "MirrorPad", {"in", "block"}, FloatT());
  b.Conv2D("padded", "pad", "w");
  b.Node("array", "TensorArrayV3", {"block"});
  b.Node("call", "PartitionedCall", {"in"});
  b.Node("gather", "Gather", {"id", "block"});
  b.Node("quant", "FakeQuantWithMinMaxVars", {"in", "bias", "bias"});
  b.Node("concat", "ConcatV2", {"in"});
  for (tensorflow::NodeDef& node : *b.mutable_def()->mutable_node()) {
    node.clear_attr();
  }
  ApplyAll(b, "in", "out");
}

TEST(DamagedGraphTest, EveryTransformBearsInputsThatAreNotThere) {
  for (const std::vector<std::string>& inputs :
       {std::vector<std::string>{}, {"in:7"}, {"in", "in", "in", "in"}}) {
    GraphBuilder b = Convolution();
    for (tensorflow::NodeDef& node : *b.mutable_def()->mutable_node()) {
      if (node.op() == "Placeholder" || node.op() == "Const") continue;
      node.clear_input();
      for (const std::string& input : inputs) node.add_input(input);
    }
    ApplyAll(b, "in", "out");
  }
}

TEST(DamagedGraphTest, DanglingInputsAndDuplicateNamesAreNoGraphs) {
  GraphBuilder dangling = Convolution();
  dangling.mutable_def()->mutable_node(2)->set_input(0, "nobody");
  EXPECT_THAT(
      Graph::FromDef(dangling.def()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'nobody'")));
  GraphBuilder twice = Convolution();
  twice.Placeholder("in", {1});
  EXPECT_THAT(Graph::FromDef(twice.def()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'in'")));
}

TEST(DamagedGraphTest, EveryTransformBearsCycles) {
  GraphBuilder b = Convolution();
  b.Node("a", "Identity", {"b"}, FloatT());
  b.Node("b", "Identity", {"a", "^self"}, FloatT());
  b.Node("self", "Identity", {"self"}, FloatT());
  b.Node("conv_cycle", "Conv2D", {"space", "w"}, FloatT());
  b.Node("space", "BatchToSpaceND", {"conv_cycle", "space", "space"}, FloatT());
  b.Node("end", "AddN", {"out", "b", "self", "space"},
         FloatT({{"N", IntAttr(4)}}));
  ApplyAll(b, "in", "end");
  ApplyAll(b, "in", "out");
}

// Runs `work` where a recursion of a few thousand calls does not fit.
void RunWithSmallStack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* data) -> void* {
                  (*static_cast<std::function<void()>*>(data))();
                  return nullptr;
                },
                &work),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// Nothing recurses along the graph.
TEST(DamagedGraphTest, EveryTransformGoesThroughDeepChains) {
  constexpr int kDepth = 4000;
  for (const char* op : {"Identity", "Relu"}) {
    GraphBuilder b;
    b.Placeholder("in", {2});
    std::string last = "in";
    for (int i = 0; i < kDepth; ++i) {
      const std::string name = absl::StrCat("n", i);
      b.Node(name, op, {last}, FloatT());
      last = name;
    }
    RunWithSmallStack([&] {
      ForEveryTransform([&](const TransformStep& step) {
        Graph graph = b.Build();
        ApplyStep(step, "in", last, &graph).status().IgnoreError();
        EXPECT_GT(graph.node_count(), 1);
      });
    });
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
