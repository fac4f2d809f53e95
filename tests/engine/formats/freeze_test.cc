#include "engine/formats/tensorflow/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/files.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "tests/engine/formats/checkpoint_writer.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::BundleWriter;
using ::optfarm::testing::FloatBytes;
using ::optfarm::testing::FloatT;
using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::GraphBuilder;
using ::optfarm::testing::IntAttr;
using ::optfarm::testing::IsOk;
using ::optfarm::testing::SliceOf;
using ::optfarm::testing::StatusIs;
using ::optfarm::testing::StringAttr;
using ::optfarm::testing::TypeAttr;
using tensorflow::DT_FLOAT;
using tensorflow::GraphDef;
using tensorflow::NodeDef;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// "x -> add(w), w a reference variable with what TensorFlow puts around it".
GraphBuilder Trainable() {
  GraphBuilder b;
  b.Placeholder("x", {2});
  NodeDef& w = b.Node("w", "VariableV2", {}, {{"dtype", TypeAttr(DT_FLOAT)}});
  (*w.mutable_attr())["shape"].mutable_shape()->add_dim()->set_size(2);
  w.set_device("/job:ps");
  b.Node("w/read", "Identity", {"w"}, FloatT());
  b.Node("sum", "Add", {"x", "w/read"}, FloatT());
  b.Floats("zeros", {2}, {0, 0});
  b.Node("w/Assign", "Assign", {"w", "zeros"}, FloatT());
  b.Node("init", "NoOp", {"^w/Assign"});
  b.mutable_def()->mutable_versions()->set_producer(24);
  return b;
}

// A saver that restores `variable` from the checkpoint's `tensor`.
void AddSaver(GraphBuilder* b, const std::string& variable,
              const std::string& tensor, const std::string& slice = "",
              const std::string& assign = "Assign") {
  const auto text = [&](const std::string& name, const std::string& value) {
    NodeDef& node = b->Node(name, "Const", {},
                            {{"dtype", TypeAttr(tensorflow::DT_STRING)}});
    auto* proto = (*node.mutable_attr())["value"].mutable_tensor();
    proto->set_dtype(tensorflow::DT_STRING);
    proto->mutable_tensor_shape()->add_dim()->set_size(1);
    proto->add_string_val(value);
  };
  text("save/Const", "model");
  text("save/names", tensor);
  text("save/slices", slice);
  tensorflow::AttrValue types;
  types.mutable_list()->add_type(DT_FLOAT);
  b->Node("save/RestoreV2", "RestoreV2",
          {"save/Const", "save/names", "save/slices"}, {{"dtypes", types}});
  b->Node("save/Identity", "Identity", {"save/RestoreV2"}, FloatT());
  b->Node("save/Assign", assign, {variable, "save/Identity"}, FloatT());
  b->Node("save/restore_all", "NoOp", {"^save/Assign"});
}

std::unique_ptr<Checkpoint> WithTensor(const std::string& name,
                                       const std::vector<float>& values) {
  BundleWriter bundle;
  bundle.Add(name, DT_FLOAT, {static_cast<int64_t>(values.size())},
             FloatBytes(values));
  const std::string prefix = JoinPath(FreshFolder(), "ckpt");
  bundle.Write(prefix);
  auto checkpoint = Checkpoint::Open(prefix);
  EXPECT_THAT(checkpoint, IsOk());
  return *std::move(checkpoint);
}

FreezeSource SourceOf(const GraphBuilder& b,
                      std::unique_ptr<Checkpoint> checkpoint) {
  FreezeSource source;
  source.graph = b.def();
  source.checkpoint = std::move(checkpoint);
  return source;
}

absl::StatusOr<FrozenGraph> FreezeTo(FreezeSource source,
                                     const std::string& output,
                                     FreezeOptions options = {}) {
  options.outputs = {output};
  return Freeze(std::move(source), options);
}

const NodeDef* Find(const GraphDef& graph, const std::string& name) {
  for (const NodeDef& node : graph.node()) {
    if (node.name() == name) return &node;
  }
  return nullptr;
}

std::vector<float> ValueOf(const GraphDef& graph, const std::string& name) {
  const NodeDef* node = Find(graph, name);
  if (node == nullptr || node->op() != "Const") return {};
  const std::string& bytes = node->attr().at("value").tensor().tensor_content();
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::string> Names(const GraphDef& graph) {
  std::vector<std::string> names;
  for (const NodeDef& node : graph.node()) names.push_back(node.name());
  return names;
}

TEST(FreezeTest, MakesConstantsAndKeepsWhatTheOutputNeeds) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(Trainable(), WithTensor("w", {3, 4})), "sum"));
  EXPECT_EQ(frozen.converted_variables, 1);
  EXPECT_THAT(Names(frozen.graph), ElementsAre("x", "w", "w/read", "sum"));
  EXPECT_THAT(ValueOf(frozen.graph, "w"), ElementsAre(3, 4));
  const NodeDef& w = *Find(frozen.graph, "w");
  EXPECT_EQ(w.attr_size(), 2);
  EXPECT_EQ(w.attr().at("dtype").type(), DT_FLOAT);
  EXPECT_EQ(w.device(), "");
  EXPECT_EQ(frozen.graph.versions().producer(), 24);
  EXPECT_THAT(frozen.remarks, ::testing::IsEmpty());
}

TEST(FreezeTest, KeepsDevicesOnRequest) {
  FreezeOptions options;
  options.clear_devices = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(Trainable(), WithTensor("w", {3, 4})), "sum", options));
  EXPECT_EQ(Find(frozen.graph, "w")->device(), "/job:ps");
}

TEST(FreezeTest, ASaverTellsTheNameInTheCheckpoint) {
  GraphBuilder b = Trainable();
  AddSaver(&b, "w", "average/of/w");
  for (const char* restore_op : {"save/restore_all", ""}) {
    FreezeSource source = SourceOf(b, WithTensor("average/of/w", {5, 6}));
    source.restore_op = restore_op;
    OPTFARM_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen,
                                 FreezeTo(std::move(source), "sum"));
    EXPECT_THAT(ValueOf(frozen.graph, "w"), ElementsAre(5, 6));
  }
}

TEST(FreezeTest, TheUserMayTellTheNameInTheCheckpoint) {
  GraphBuilder b = Trainable();
  AddSaver(&b, "w", "w");
  FreezeOptions options;
  options.stored_names = {{"w", "w/average"}};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("w/average", {5, 6})), "sum", options));
  EXPECT_THAT(ValueOf(frozen.graph, "w"), ElementsAre(5, 6));
}

TEST(FreezeTest, RestoresAPartOfAPartitionedVariable) {
  GraphBuilder b = Trainable();
  AddSaver(&b, "w", "whole", "4 1,2");
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("whole", {1, 2, 3, 4})), "sum"));
  EXPECT_THAT(ValueOf(frozen.graph, "w"), ElementsAre(2, 3));
  EXPECT_THAT(FreezeTo(SourceOf(b, WithTensor("whole", {1, 2, 3})), "sum"),
              StatusIs(kInvalid, HasSubstr("restores a part of a tensor [4]")));
}

TEST(FreezeTest, RefusesValuesOfAnotherShapeOrType) {
  EXPECT_THAT(
      FreezeTo(SourceOf(Trainable(), WithTensor("w", {1, 2, 3})), "sum"),
      StatusIs(kInvalid, AllOf(HasSubstr("variable 'w'"), HasSubstr("[3]"),
                               HasSubstr("[2]"))));
  GraphBuilder b = Trainable();
  (*b.mutable_def()->mutable_node(1)->mutable_attr())["dtype"].set_type(
      tensorflow::DT_INT32);
  EXPECT_THAT(
      FreezeTo(SourceOf(b, WithTensor("w", {1, 2})), "sum"),
      StatusIs(kInvalid, AllOf(HasSubstr("float"), HasSubstr("int32"))));
}

TEST(FreezeTest, NamesVariablesWithoutAValue) {
  EXPECT_THAT(FreezeTo(SourceOf(Trainable(), WithTensor("v", {1, 2})), "sum"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("with 1 tensors"), HasSubstr("'w'"))));
  FreezeSource source = SourceOf(Trainable(), nullptr);
  EXPECT_THAT(FreezeTo(std::move(source), "sum"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("comes without a checkpoint")));
}

TEST(FreezeTest, SaysWhenThereIsNothingToFreeze) {
  GraphBuilder b;
  b.Placeholder("x", {2});
  EXPECT_THAT(FreezeTo(SourceOf(b, WithTensor("w", {1})), "x"),
              StatusIs(kInvalid, HasSubstr("is it frozen already?")));
  EXPECT_THAT(FreezeTo(SourceOf(Trainable(), WithTensor("w", {1, 2})), "summ"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'sum'")));
  EXPECT_THAT(Freeze(SourceOf(Trainable(), WithTensor("w", {1, 2})), {}),
              StatusIs(kInvalid, HasSubstr("outputs are needed")));
}

TEST(FreezeTest, KeepsVariablesThatAreNotToBecomeConstants) {
  GraphBuilder b = Trainable();
  FreezeOptions options;
  options.not_variables = {"w"};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph kept,
      FreezeTo(SourceOf(b, WithTensor("w", {1, 2})), "sum", options));
  EXPECT_EQ(kept.converted_variables, 0);
  EXPECT_EQ(Find(kept.graph, "w")->op(), "VariableV2");
  options.not_variables.clear();
  options.only_variables = {"other"};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph none,
      FreezeTo(SourceOf(b, WithTensor("w", {1, 2})), "sum", options));
  EXPECT_EQ(none.converted_variables, 0);
  EXPECT_THAT(none.remarks,
              ElementsAre("'other' is no variable of the graph."));
}

TEST(FreezeTest, RefusesAnOutputThatNeedsAnUpdate) {
  GraphBuilder b = Trainable();
  b.Node("next", "AssignAdd", {"w", "x"}, FloatT());
  b.Node("trained", "Identity", {"next"}, FloatT());
  EXPECT_THAT(FreezeTo(SourceOf(b, WithTensor("w", {1, 2})), "trained"),
              StatusIs(kInvalid, AllOf(HasSubstr("'next' (op AssignAdd)"),
                                       HasSubstr("--drop_updates"))));
  FreezeOptions options;
  options.drop_updates = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("w", {1, 2})), "trained", options));
  EXPECT_THAT(Names(frozen.graph), ElementsAre("w", "trained"));
  EXPECT_EQ(frozen.remarks.size(), 1u);
}

TEST(FreezeTest, EvaluatesInitializers) {
  GraphBuilder b = Trainable();
  FreezeOptions options;
  options.initializers = {"init"};
  EXPECT_THAT(
      FreezeTo(SourceOf(b, WithTensor("other", {1})), "sum", options),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("initial value")));
  std::vector<std::string> asked;
  options.evaluate = [&](const GraphDef& graph, const std::string& tensor) {
    asked = Names(graph);
    asked.push_back(tensor);
    tensorflow::TensorProto value =
        Find(graph, "zeros")->attr().at("value").tensor();
    return value;
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("other", {1})), "sum", options));
  EXPECT_THAT(asked, ElementsAre("zeros", "zeros"));
  EXPECT_EQ(Find(frozen.graph, "w")->op(), "Const");
}

TEST(FreezeTest, InitializersSeeTheValuesOfOtherVariables) {
  GraphBuilder b = Trainable();
  NodeDef& copy =
      b.Node("copy", "VariableV2", {}, {{"dtype", TypeAttr(DT_FLOAT)}});
  (*copy.mutable_attr())["shape"].mutable_shape()->add_dim()->set_size(2);
  b.Node("copy/Assign", "Assign", {"copy", "w/read"}, FloatT());
  b.Node("out", "Add", {"copy", "x"}, FloatT());
  FreezeOptions options;
  options.initializers = {"copy/Assign"};
  options.evaluate = [&](const GraphDef& graph, const std::string&) {
    return Find(graph, "w")->attr().at("value").tensor();
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("w", {7, 8})), "out", options));
  EXPECT_THAT(ValueOf(frozen.graph, "copy"), ElementsAre(7, 8));
  EXPECT_EQ(Find(frozen.graph, "w"), nullptr);
}

TEST(FreezeTest, RefusesAnInitializerThatNeedsItself) {
  GraphBuilder b = Trainable();
  b.Node("again", "Assign", {"w", "w/read"}, FloatT());
  FreezeOptions options;
  options.initializers = {"again"};
  options.evaluate = [](const GraphDef&, const std::string&) {
    return tensorflow::TensorProto();
  };
  EXPECT_THAT(FreezeTo(SourceOf(b, nullptr), "sum", options),
              StatusIs(kInvalid, HasSubstr("depends on itself")));
}

// A resource variable that passes through a branch and a loop's entry.
GraphBuilder WithResource() {
  GraphBuilder b;
  b.Placeholder("x", {2});
  b.Placeholder("choice", {}, tensorflow::DT_BOOL);
  NodeDef& w = b.Node("w", "VarHandleOp", {}, {{"dtype", TypeAttr(DT_FLOAT)}});
  (*w.mutable_attr())["shape"].mutable_shape()->add_dim()->set_size(2);
  const auto resource = TypeAttr(tensorflow::DT_RESOURCE);
  b.Node("switch", "Switch", {"w", "choice"}, {{"T", resource}});
  b.Node("handle", "Identity", {"switch:1"}, {{"T", resource}});
  b.Node("read", "ReadVariableOp", {"handle", "^x"},
         {{"dtype", TypeAttr(DT_FLOAT)}});
  b.Node("out", "Add", {"x", "read"}, FloatT());
  return b;
}

TEST(FreezeTest, ConvertsResourceVariables) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(WithResource(), WithTensor("w", {1, 2})), "out"));
  EXPECT_THAT(ValueOf(frozen.graph, "w"), ElementsAre(1, 2));
  for (const char* name : {"switch", "handle", "read"}) {
    EXPECT_EQ(Find(frozen.graph, name)->attr().at("T").type(), DT_FLOAT);
  }
  const NodeDef& read = *Find(frozen.graph, "read");
  EXPECT_EQ(read.op(), "Identity");
  EXPECT_EQ(read.attr().count("dtype"), 0u);
  EXPECT_THAT(read.input(), ElementsAre("handle", "^x"));
}

TEST(FreezeTest, ConvertsGathersFromResources) {
  GraphBuilder b = WithResource();
  b.Ints("ids", {1}, {1});
  b.Node("rows", "ResourceGather", {"w", "ids"},
         {{"dtype", TypeAttr(DT_FLOAT)},
          {"Tindices", TypeAttr(tensorflow::DT_INT32)},
          {"validate_indices", ::optfarm::testing::BoolAttr(true)}});
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("w", {1, 2})), "rows"));
  EXPECT_THAT(Names(frozen.graph),
              ElementsAre("w", "ids", "rows/axis", "rows"));
  const NodeDef& rows = *Find(frozen.graph, "rows");
  EXPECT_EQ(rows.op(), "GatherV2");
  EXPECT_THAT(rows.input(), ElementsAre("w", "ids", "rows/axis"));
  EXPECT_EQ(rows.attr().at("Tparams").type(), DT_FLOAT);
  EXPECT_EQ(rows.attr().at("Taxis").type(), tensorflow::DT_INT32);
}

TEST(FreezeTest, RefusesWritesToResources) {
  GraphBuilder b = WithResource();
  b.Node("write", "AssignVariableOp", {"w", "x"},
         {{"dtype", TypeAttr(DT_FLOAT)}});
  b.Node("after", "Identity", {"x", "^write"}, FloatT());
  EXPECT_THAT(FreezeTo(SourceOf(b, WithTensor("w", {1, 2})), "after"),
              StatusIs(kInvalid, HasSubstr("'write' (op AssignVariableOp)")));
  FreezeOptions options;
  options.drop_updates = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("w", {1, 2})), "after", options));
  EXPECT_THAT(Names(frozen.graph), ElementsAre("x", "after"));
}

TEST(FreezeTest, FollowsTheWishToBePlacedBesideANode) {
  GraphBuilder b = Trainable();
  tensorflow::AttrValue beside;
  beside.mutable_list()->add_s("loc:@zeros");
  (*b.mutable_def()->mutable_node(3)->mutable_attr())["_class"] = beside;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("w", {3, 4})), "sum:0"));
  EXPECT_THAT(Names(frozen.graph),
              ElementsAre("x", "w", "w/read", "sum", "zeros"));
}

TEST(FreezeTest, ReferenceOpsBecomePlainOnes) {
  GraphBuilder b = Trainable();
  b.Placeholder("choice", {}, tensorflow::DT_BOOL);
  b.Node("switch", "RefSwitch", {"w", "choice"}, FloatT());
  b.Node("entered", "RefEnter", {"switch:1"},
         FloatT({{"frame_name", StringAttr("loop")}}));
  b.Node("out", "Identity", {"entered"}, FloatT());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(SourceOf(b, WithTensor("w", {3, 4})), "out"));
  EXPECT_EQ(Find(frozen.graph, "switch")->op(), "Switch");
  EXPECT_EQ(Find(frozen.graph, "entered")->op(), "Enter");
}

// --- SavedModels -------------------------------------------------------------

tensorflow::SavedModel SmallModel() {
  tensorflow::SavedModel model;
  model.set_saved_model_schema_version(1);
  tensorflow::MetaGraphDef* meta = model.add_meta_graphs();
  meta->mutable_meta_info_def()->add_tags("serve");
  *meta->mutable_graph_def() = Trainable().def();
  auto& signature = (*meta->mutable_signature_def())["serving_default"];
  signature.set_method_name("tensorflow/serving/predict");
  auto& x = (*signature.mutable_inputs())["in"];
  x.set_name("x:0");
  x.set_dtype(DT_FLOAT);
  x.mutable_tensor_shape()->add_dim()->set_size(-1);
  (*signature.mutable_outputs())["out"].set_name("sum:0");
  return model;
}

std::string WriteModel(const tensorflow::SavedModel& model) {
  const std::string folder = FreshFolder();
  EXPECT_THAT(WriteFileAtomically(JoinPath(folder, "saved_model.pb"),
                                  model.SerializeAsString()),
              IsOk());
  EXPECT_THAT(MakeFolders(JoinPath(folder, "variables")), IsOk());
  BundleWriter bundle;
  bundle.Add("w", DT_FLOAT, {2}, FloatBytes({1, 2}));
  bundle.Write(JoinPath(folder, "variables/variables"));
  return folder;
}

TEST(SavedModelTest, FreezesWithItsOwnVariables) {
  const std::string folder = WriteModel(SmallModel());
  EXPECT_TRUE(IsSavedModelFolder(folder));
  OPTFARM_ASSERT_OK_AND_ASSIGN(FreezeSource source,
                               OpenSavedModelToFreeze(folder, {"serve"}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Signature signature,
                               FindSignature(source.meta, ""));
  EXPECT_EQ(signature.key, "serving_default");
  ASSERT_EQ(signature.inputs.size(), 1u);
  EXPECT_EQ(signature.inputs[0].tensor, "x");
  EXPECT_THAT(*signature.inputs[0].shape, ElementsAre(-1));
  EXPECT_EQ(signature.outputs[0].shape, std::nullopt);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const FrozenGraph frozen,
      FreezeTo(std::move(source), signature.outputs[0].tensor));
  EXPECT_THAT(ValueOf(frozen.graph, "w"), ElementsAre(1, 2));
}

TEST(SavedModelTest, TagsAreASet) {
  tensorflow::SavedModel model = SmallModel();
  *model.add_meta_graphs() = model.meta_graphs(0);
  model.mutable_meta_graphs(1)->mutable_meta_info_def()->add_tags("gpu");
  const std::string folder = WriteModel(model);
  EXPECT_THAT(OpenSavedModelToFreeze(folder, {"gpu", "serve"}), IsOk());
  EXPECT_THAT(OpenSavedModelToFreeze(folder, {"gpu"}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("{serve}"), HasSubstr("{gpu,serve}"))));
  EXPECT_THAT(OpenSavedModelToFreeze(folder, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("{serve}")));
}

TEST(SavedModelTest, ListsTheSignaturesThatThereAre) {
  tensorflow::MetaGraphDef meta = SmallModel().meta_graphs(0);
  EXPECT_THAT(FindSignature(meta, "regress"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("it has 'serving_default'")));
  meta.clear_signature_def();
  EXPECT_THAT(FindSignature(meta, ""),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none at all")));
  (*meta.mutable_signature_def())["only"];
  (*meta.mutable_signature_def())["__saved_model_init_op"];
  EXPECT_EQ(FindSignature(meta, "")->key, "only");
}

TEST(SavedModelTest, NamesTheInitOp) {
  tensorflow::MetaGraphDef meta;
  EXPECT_EQ(*InitOpOf(meta), "");
  (*meta.mutable_collection_def())["legacy_init_op"]
      .mutable_node_list()
      ->add_value("group_deps");
  EXPECT_EQ(*InitOpOf(meta), "group_deps");
  (*meta.mutable_collection_def())["saved_model_main_op"]
      .mutable_node_list()
      ->add_value("main");
  EXPECT_EQ(*InitOpOf(meta), "main");
  (*meta.mutable_collection_def())["saved_model_main_op"]
      .mutable_node_list()
      ->add_value("more");
  EXPECT_THAT(InitOpOf(meta), StatusIs(kInvalid, HasSubstr("it names 2")));
}

TEST(SavedModelTest, SaysWhatAFileIsInstead) {
  EXPECT_THAT(ParseSavedModel(Trainable().def().SerializeAsString(), "'m'"),
              StatusIs(kInvalid, HasSubstr("'m' is no SavedModel")));
  EXPECT_THAT(ParseSavedModel("PK\x03\x04zip", "'m'"),
              StatusIs(kInvalid, HasSubstr("is a zip archive")));
  tensorflow::SavedModel model = SmallModel();
  model.set_saved_model_schema_version(2);
  EXPECT_THAT(ParseSavedModel(model.SerializeAsString(), "'m'"),
              StatusIs(kInvalid, HasSubstr("schema version 2")));
  const std::string bytes = SmallModel().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    ParseSavedModel(bytes.substr(0, size), "'m'").IgnoreError();
  }
  EXPECT_THAT(OpenSavedModelToFreeze(FreshFolder(), {}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("neither saved_model.pb")));
}

TEST(SavedModelTest, RemarksWhatAFrozenGraphCannotHold) {
  tensorflow::SavedModel model = SmallModel();
  tensorflow::MetaGraphDef* meta = model.mutable_meta_graphs(0);
  GraphBuilder b = Trainable();
  b.Node("table", "HashTableV2", {});
  b.Node("after", "Identity", {"sum", "^table"}, FloatT());
  *meta->mutable_graph_def() = b.def();
  meta->add_asset_file_def()->set_filename("words.txt");
  (*meta->mutable_collection_def())["legacy_init_op"]
      .mutable_node_list()
      ->add_value("fill");
  OPTFARM_ASSERT_OK_AND_ASSIGN(FreezeSource source,
                               OpenSavedModelToFreeze(WriteModel(model), {}));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const FrozenGraph frozen,
                               FreezeTo(std::move(source), "after"));
  ASSERT_EQ(frozen.remarks.size(), 1u);
  EXPECT_THAT(frozen.remarks[0],
              AllOf(HasSubstr("'table'"), HasSubstr("'fill'"),
                    HasSubstr("'words.txt'")));
}

}  // namespace
}  // namespace optfarm::formats
