#include "engine/runtime/core/resource.h"
#include "engine/transforms/nodes/saved_variables.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> LongsOf(const Graph& graph, const std::string& name) {
  const graph::NodeId id = graph.Find(name);
  if (id == graph::kNoNode) return {};
  return ConstValue(graph.node(id)).value().AsInt64s().value();
}

void Ids(GraphBuilder* b, tensorflow::DataType type = tensorflow::DT_INT64) {
  b->Placeholder("ids", {2}, type);
}

void Gather(GraphBuilder* b, const std::string& name = "gather",
            tensorflow::DataType ids = tensorflow::DT_INT64) {
  b->Node(name, "Gather", {"w/read", "ids"},
          {{"Tparams", TypeAttr(tensorflow::DT_FLOAT)},
           {"Tindices", TypeAttr(ids)}});
}

GraphBuilder Column(const std::vector<float>& weights) {
  GraphBuilder b;
  Ids(&b);
  b.Floats("w", {static_cast<int64_t>(weights.size()), 1}, weights);
  b.Node("w/read", "Identity", {"w"}, FloatT());
  return b;
}

TEST(SparsifyGatherTest, LooksUpInATable) {
  GraphBuilder b = Column({0, 0.5f, 1e-6f, -1e-5f});
  Gather(&b);
  b.Node("out", "Relu", {"gather"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, "sparsify_gather", "ids", "out");
  EXPECT_EQ(report.nodes_changed, 1);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("run 'group_deps'")));
  EXPECT_THAT(LongsOf(graph, "w/indices"), ElementsAre(1, 3));
  EXPECT_THAT(FloatsOf(graph, "w/values"), ElementsAre(0.5f, -1e-5f));
  EXPECT_EQ(Show(graph, "w/InitializeTable"),
            "InitializeTable(w/HashTable, w/indices, w/values)");
  EXPECT_EQ(Show(graph, "group_deps"), "NoOp(^w/InitializeTable)");
  EXPECT_EQ(Show(graph, "gather/LookupTableFind"),
            "LookupTableFind(w/HashTable, ids, gather/Const)");
  EXPECT_EQ(Show(graph, "gather"),
            "ExpandDims(gather/LookupTableFind, gather/ExpandDims/Const)");
  EXPECT_THAT(LongsOf(graph, "gather/ExpandDims/Const"), ElementsAre(-1));
  EXPECT_EQ(graph.Find("w"), graph::kNoNode);
  EXPECT_EQ(graph.Find("w/read"), graph::kNoNode);
}

TEST(SparsifyGatherTest, FindsWhatGatherFound) {
  GraphBuilder b = Column({0, 0.5f, 0, -2});
  Gather(&b);
  const Graph before = b.Build();
  Graph after = b.Build();
  MustApply(&after, "sparsify_gather", "ids", "gather");
  const Tensor ids = Tensor::FromValues<int64_t>({2}, {3, 0});
  runtime::SessionOptions options;
  options.resources = std::make_shared<runtime::ResourceContainer>();
  const auto run = [&](const Graph& graph, const std::string& fetch,
                       const std::vector<Tensor>& feeds)
      -> absl::StatusOr<std::vector<Tensor>> {
    OPTFARM_ASSIGN_OR_RETURN(
        const auto session,
        runtime::Session::Create(
            graph, graph::ParseTensorNames(feeds.empty() ? "" : "ids").value(),
            graph::ParseTensorNames(fetch).value(), options));
    return session->Run(feeds);
  };
  OPTFARM_ASSERT_OK(run(after, "^group_deps", {}).status());
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto found, run(after, "gather", {ids}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto was, run(before, "gather", {ids}));
  EXPECT_TRUE(found[0].shape() == was[0].shape());
  EXPECT_THAT(found[0].flat<float>(), ElementsAre(-2, 0));
  EXPECT_THAT(was[0].flat<float>(), ElementsAre(-2, 0));
}

TEST(SparsifyGatherTest, TwoLookupsShareATable) {
  GraphBuilder b = Column({1, 0});
  Gather(&b, "one");
  b.Ints("axis", {}, {0});
  b.Node("two", "GatherV2", {"w/read", "ids", "axis"},
         {{"Tparams", TypeAttr(tensorflow::DT_FLOAT)},
          {"Tindices", TypeAttr(tensorflow::DT_INT64)},
          {"Taxis", TypeAttr(tensorflow::DT_INT32)}});
  b.Node("out", "Add", {"one", "two"}, FloatT());
  Graph graph = b.Build();
  EXPECT_EQ(MustApply(&graph, "sparsify_gather", "ids", "out").nodes_changed,
            2);
  EXPECT_EQ(Show(graph, "two/LookupTableFind"),
            "LookupTableFind(w/HashTable, ids, two/Const)");
  EXPECT_EQ(graph.Find("axis"), graph::kNoNode);
  EXPECT_EQ(graph.Find("w"), graph::kNoNode);
}

TEST(SparsifyGatherTest, AColumnOfZerosHasOneEntry) {
  GraphBuilder b = Column({0, 0, 0});
  Gather(&b);
  Graph graph = b.Build();
  MustApply(&graph, "sparsify_gather", "ids", "gather");
  EXPECT_THAT(LongsOf(graph, "w/indices"), ElementsAre(0));
  EXPECT_THAT(FloatsOf(graph, "w/values"), ElementsAre(0));
}

TEST(SparsifyGatherTest, WidensIds) {
  GraphBuilder b;
  Ids(&b, tensorflow::DT_INT32);
  b.Floats("w", {2, 1}, {1, 2});
  b.Node("w/read", "Identity", {"w"}, FloatT());
  Gather(&b, "gather", tensorflow::DT_INT32);
  Graph graph = b.Build();
  MustApply(&graph, "sparsify_gather", "ids", "gather");
  EXPECT_EQ(Show(graph, "gather/LookupTableFind"),
            "LookupTableFind(w/HashTable, gather/Cast, gather/Const)");
}

TEST(SparsifyGatherTest, AddsToTheGroupThatIsThere) {
  GraphBuilder b = Column({1, 2});
  b.Node("start", "NoOp", {});
  b.Node("init", "NoOp", {"^start"});
  Gather(&b);
  Graph graph = b.Build();
  MustApply(&graph, "sparsify_gather(group_init_node=init)", "ids", "gather");
  EXPECT_EQ(Show(graph, "init"), "NoOp(^start, ^w/InitializeTable)");
}

TEST(SparsifyGatherTest, SaysWhyALookupStays) {
  GraphBuilder b;
  Ids(&b);
  b.Floats("w", {1, 2}, {1, 2});
  b.Node("w/read", "Identity", {"w"}, FloatT());
  Gather(&b);
  Graph graph = b.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, "sparsify_gather", "ids", "gather")),
              ElementsAre(HasSubstr("not one column of float")));
  GraphBuilder c = Column({1, 2});
  c.Ints("axis", {}, {1});
  c.Node("gather", "GatherV2", {"w/read", "ids", "axis"},
         {{"Tparams", TypeAttr(tensorflow::DT_FLOAT)},
          {"Tindices", TypeAttr(tensorflow::DT_INT64)},
          {"Taxis", TypeAttr(tensorflow::DT_INT32)}});
  graph = c.Build();
  EXPECT_THAT(Skipped(MustApply(&graph, "sparsify_gather", "ids", "gather")),
              ElementsAre(HasSubstr("its axis is not 0")));
}

// A variable that is one part of two, with an initializer and a saver.
GraphBuilder Variable(const std::string& slice) {
  GraphBuilder b;
  Ids(&b);
  tensorflow::AttrValue shape;
  shape.mutable_shape()->add_dim()->set_size(2);
  shape.mutable_shape()->add_dim()->set_size(1);
  b.Node("w", "VariableV2", {},
         {{"dtype", TypeAttr(tensorflow::DT_FLOAT)}, {"shape", shape}});
  b.Node("w/read", "Identity", {"w"}, FloatT());
  Gather(&b);
  if (slice.empty()) return b;
  b.Floats("zeros", {2, 1}, {0, 0});
  b.Node("w/Assign", "Assign", {"w", "zeros"}, FloatT());
  b.Node("init", "NoOp", {"^w/Assign"});
  b.Placeholder("file", {}, tensorflow::DT_STRING);
  for (const auto& [name, text] :
       {std::pair("names", std::string("both")), std::pair("slices", slice)}) {
    tensorflow::AttrValue value;
    value.mutable_tensor()->set_dtype(tensorflow::DT_STRING);
    value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(1);
    value.mutable_tensor()->add_string_val(text);
    b.Node(name, "Const", {},
           {{"dtype", TypeAttr(tensorflow::DT_STRING)}, {"value", value}});
  }
  tensorflow::AttrValue types;
  types.mutable_list()->add_type(tensorflow::DT_FLOAT);
  b.Node("restore", "RestoreV2", {"file", "names", "slices"},
         {{"dtypes", types}});
  b.Node("save/Assign", "Assign", {"w", "restore"}, FloatT());
  b.Node("restore_all", "NoOp", {"^save/Assign"});
  return b;
}

PipelineOptions WithCheckpoint() {
  PipelineOptions options;
  options.checkpoint_reader =
      [](const std::string& checkpoint,
         const std::string& name) -> absl::StatusOr<tensorflow::TensorProto> {
    if (checkpoint != "model.ckpt") return absl::NotFoundError(checkpoint);
    if (name == "w") {
      return Tensor::FromValues<float>({2, 1}, {7, 0}).ToProto();
    }
    if (name == "both") {
      return Tensor::FromValues<float>({5, 1}, {1, 2, 3, 0, 5}).ToProto();
    }
    return absl::NotFoundError(name);
  };
  return options;
}

TEST(SparsifyGatherTest, TakesVariablesFromACheckpoint) {
  Graph graph = Variable("").Build();
  OPTFARM_ASSERT_OK(Apply(&graph,
                          "sparsify_gather(input_checkpoint=model.ckpt)", "ids",
                          "gather", WithCheckpoint())
                        .status());
  EXPECT_THAT(FloatsOf(graph, "w/values"), ElementsAre(7));
  EXPECT_EQ(graph.Find("w"), graph::kNoNode);
}

TEST(SparsifyGatherTest, FindsThePartOfAPartitionedVariable) {
  Graph graph = Variable("5 1 2,2:0,1").Build();
  OPTFARM_ASSERT_OK(Apply(&graph,
                          "sparsify_gather(input_checkpoint=model.ckpt)", "ids",
                          "gather", WithCheckpoint())
                        .status());
  EXPECT_THAT(LongsOf(graph, "w/indices"), ElementsAre(0));
  EXPECT_THAT(FloatsOf(graph, "w/values"), ElementsAre(3));
  // What gave the variable its values is gone.
  for (const char* gone : {"w", "w/Assign", "save/Assign"}) {
    EXPECT_EQ(graph.Find(gone), graph::kNoNode) << gone;
  }
  EXPECT_EQ(Show(graph, "restore_all"), "NoOp()");
}

// What training watched of the weights: their mean, in a summary with another.
void Watch(GraphBuilder* b) {
  b->Ints("axes", {2}, {0, 1});
  b->Node("mean", "Mean", {"w/read", "axes"}, FloatT());
  b->Placeholder("tag", {}, tensorflow::DT_STRING);
  b->Node("w/summary", "ScalarSummary", {"tag", "mean"}, FloatT());
  b->Floats("loss", {}, {1});
  b->Node("loss/summary", "ScalarSummary", {"tag", "loss"}, FloatT());
  tensorflow::AttrValue two;
  two.set_i(2);
  b->Node("summaries", "MergeSummary", {"w/summary", "loss/summary"},
          {{"N", two}});
}

TEST(SparsifyGatherTest, RemovesWhatWasWatchedOfTheWeights) {
  GraphBuilder b = Variable("5 1 2,2:0,1");
  Watch(&b);
  Graph graph = b.Build();
  OPTFARM_ASSERT_OK(Apply(&graph,
                          "sparsify_gather(input_checkpoint=model.ckpt)", "ids",
                          "gather", WithCheckpoint())
                        .status());
  for (const char* gone : {"w", "w/read", "mean", "axes", "w/summary"}) {
    EXPECT_EQ(graph.Find(gone), graph::kNoNode) << gone;
  }
  EXPECT_EQ(Show(graph, "summaries"), "MergeSummary(loss/summary)");
  EXPECT_EQ(graph.node(graph.Find("summaries")).FindAttr("N")->i(), 1);
}

TEST(SparsifyGatherTest, KeepsWeightsThatAnOutputIsComputedFrom) {
  GraphBuilder b = Column({1, 0});
  Gather(&b);
  b.Node("norm", "Relu", {"w/read"}, FloatT());
  Graph graph = b.Build();
  EXPECT_THAT(
      Skipped(MustApply(&graph, "sparsify_gather", "ids", "gather,norm")),
      ElementsAre(HasSubstr("'norm' is computed from them")));
  EXPECT_EQ(Show(graph, "norm"), "Relu(w/read)");
}

TEST(SparsifyGatherTest, SaysHowToReadAVariable) {
  Graph graph = Variable("").Build();
  EXPECT_THAT(Skipped(MustApply(&graph, "sparsify_gather", "ids", "gather")),
              ElementsAre(HasSubstr("give input_checkpoint")));
  EXPECT_THAT(Skipped(MustApply(&graph, "sparsify_gather(input_checkpoint=a)",
                                "ids", "gather")),
              ElementsAre(HasSubstr("checkpoints cannot be read here")));
}

TEST(SavedVariablesTest, ParsesSlices) {
  const auto ranges = ParseSlice("10 4 0,5:-");
  OPTFARM_ASSERT_OK(ranges);
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_EQ((*ranges)[0].length, 5);
  EXPECT_EQ((*ranges)[1].length, 4);
  EXPECT_TRUE(ParseSlice("")->empty());
  for (const char* bad : {"10", "10 4 -", "10 8,3", "10 -1,3", "10 a,3",
                          "-5 0,1", "10 9223372036854775807,1"}) {
    EXPECT_FALSE(ParseSlice(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
