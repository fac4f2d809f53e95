// Small random graphs under random lists of transforms. Those that keep the
// meaning have to leave the outputs what they were, those that quantize have to
// leave a graph that runs, and no damage to the graph may stop the process.
// Every case follows from its number alone; a failure shows the graph, the
// transforms and the number.

#include <cmath>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/engine/transforms/random_graphs.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

// More for a long hunt.
uint32_t NumberOfCases() {
  const char* cases = std::getenv("OPTFARM_RANDOM_CASES");
  int number = 0;
  return cases != nullptr && absl::SimpleAtoi(cases, &number) ? number : 1000;
}

std::string RandomTransforms(uint32_t seed) {
  static const std::vector<std::string>* const kAll =
      new std::vector<std::string>{
          "add_default_attributes",
          "backport_concatv2",
          "flatten_atrous_conv",
          "factorize_products(tolerance=0, minimum_size=1)",
          "fold_batch_norms",
          "fold_batch_norms",
          "fold_constants",
          "fold_constants(exclude_op=Conv2D)",
          "fold_old_batch_norms",
          "fold_old_batch_norms",
          "fuse_convolutions",
          "fuse_pad_and_conv",
          "fuse_resize_and_conv",
          "insert_logging(op=Relu, first_n=0)",
          "merge_duplicate_nodes",
          "obfuscate_names",
          "prune_channels",
          "remove_attribute(attribute_name=_note)",
          "remove_control_dependencies",
          "remove_device",
          "remove_ema",
          "remove_nodes(op=Identity, op=CheckNumerics)",
          "rename_attribute(old_attribute_name=_note, "
          "new_attribute_name=_remark)",
          "set_device(device=\"/gpu:0\")",
          "sort_by_execution_order",
          "strip_unused_nodes"};
  Dice dice(seed);
  std::vector<std::string> chosen;
  const int count = 1 + dice.Roll(6);
  for (int i = 0; i < count; ++i) chosen.push_back(dice.Of(*kAll));
  return absl::StrJoin(chosen, " ");
}

// The graph in few words, for the message of a failure.
std::string Describe(const Graph& graph) {
  std::string text;
  for (graph::NodeId id : graph.Ids()) {
    const std::string& name = graph.node(id).name();
    absl::StrAppend(&text, "  ", name, " = ", Show(graph, name), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<Tensor>> Answers(
    const Graph& graph, const std::vector<std::string>& outputs) {
  runtime::SessionOptions options;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session,
      runtime::Session::Create(
          graph, graph::ParseTensorNames("in").value(),
          graph::ParseTensorNames(absl::StrJoin(outputs, ",")).value(),
          options));
  return session->Run({Wave({1, 6, 5, 4})});
}

// Where two tensors differ by more than rounding; "" when they do not.
std::string Difference(const Tensor& before, const Tensor& after) {
  if (!(before.shape() == after.shape())) {
    return absl::StrCat("shape ", after.shape().ToString(), " instead of ",
                        before.shape().ToString());
  }
  float largest = 1;
  for (float v : before.flat<float>()) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < before.flat<float>().size(); ++i) {
    const float is = after.flat<float>()[i];
    const float was = before.flat<float>()[i];
    if (!(std::abs(is - was) <= 1e-4f * largest)) {
      return absl::StrCat("element ", i, " is ", is, " and was ", was);
    }
  }
  return "";
}

TEST(RandomPipelinesTest, OutputsStayWhatTheyWere) {
  std::map<std::string, int> changes;
  for (uint32_t number = 0; number < NumberOfCases(); ++number) {
    std::vector<std::string> outputs;
    const Graph original = GraphMaker(number, true).Make(&outputs).Build();
    const std::string transforms = RandomTransforms(number + 1000000);
    const std::string wanted = absl::StrJoin(outputs, ",");
    const std::string of_case =
        absl::StrCat("case ", number, ": ", transforms, "\noutputs ", wanted,
                     " of\n", Describe(original));
    const auto before = Answers(original, outputs);
    ASSERT_TRUE(before.ok()) << before.status() << "\n" << of_case;
    Graph graph = original.Clone();
    const auto report = Apply(&graph, transforms, "in", wanted);
    ASSERT_TRUE(report.ok()) << report.status() << "\n" << of_case;
    for (const TransformStats& step : report->steps) {
      if (step.report.nodes_changed == 0) continue;
      ++changes[step.step.substr(0, step.step.find('('))];
    }
    const auto after = Answers(graph, outputs);
    ASSERT_TRUE(after.ok()) << after.status() << "\n"
                            << of_case << "which became\n"
                            << Describe(graph);
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(Difference((*before)[i], (*after)[i]), "")
          << "output " << outputs[i] << " of " << of_case << "which became\n"
          << Describe(graph);
    }
    if (HasFailure()) return;
  }
  // All of this was put to the test.
  for (const char* transform :
       {"backport_concatv2", "flatten_atrous_conv", "fold_batch_norms",
        "fold_constants", "fold_old_batch_norms", "fuse_convolutions",
        "fuse_pad_and_conv", "fuse_resize_and_conv", "insert_logging",
        "merge_duplicate_nodes", "obfuscate_names", "remove_nodes",
        "sort_by_execution_order", "strip_unused_nodes"}) {
    EXPECT_GT(changes[transform], 0) << transform;
  }
}

// Lets the last channels of some constants be zero, or what the first are.
void MakeNeedlessChannels(Dice* dice, tensorflow::GraphDef* def) {
  for (tensorflow::NodeDef& node : *def->mutable_node()) {
    if (node.op() != "Const") continue;
    tensorflow::TensorProto* tensor =
        (*node.mutable_attr())["value"].mutable_tensor();
    const int rank = tensor->tensor_shape().dim_size();
    if (tensor->float_val_size() == 0 || rank == 0 || dice->OneIn(4)) continue;
    // Filters of depthwise layers have theirs before the last axis.
    const int axis =
        rank == 4 && tensor->tensor_shape().dim(3).size() == 1 ? 2 : rank - 1;
    const auto channels =
        static_cast<int>(tensor->tensor_shape().dim(axis).size());
    const bool is_zero = rank > 1 && dice->OneIn(2);
    for (int i = channels - 1; i < tensor->float_val_size(); i += channels) {
      tensor->set_float_val(i,
                            is_zero ? 0 : tensor->float_val(i - channels + 1));
    }
  }
}

TEST(RandomPipelinesTest, PrunedGraphsAnswerAsBefore) {
  int64_t changed = 0;
  for (uint32_t number = 0; number < NumberOfCases(); ++number) {
    std::vector<std::string> outputs;
    tensorflow::GraphDef def = GraphMaker(number, true).Make(&outputs).def();
    Dice dice(number + 3000000);
    MakeNeedlessChannels(&dice, &def);
    absl::StatusOr<Graph> graph = Graph::FromDef(def);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const std::string of_case =
        absl::StrCat("case ", number, ", outputs ", absl::StrJoin(outputs, ","),
                     " of\n", Describe(*graph));
    const auto before = Answers(*graph, outputs);
    ASSERT_TRUE(before.ok()) << before.status() << "\n" << of_case;
    const auto report = Apply(&*graph, "fold_constants prune_channels", "in",
                              absl::StrJoin(outputs, ","));
    ASSERT_TRUE(report.ok()) << report.status() << "\n" << of_case;
    changed += report->steps.back().report.nodes_changed;
    const auto after = Answers(*graph, outputs);
    ASSERT_TRUE(after.ok()) << after.status() << "\n"
                            << of_case << "which became\n"
                            << Describe(*graph);
    for (size_t i = 0; i < outputs.size(); ++i) {
      ASSERT_EQ(Difference((*before)[i], (*after)[i]), "")
          << "output " << outputs[i] << " of " << of_case << "which became\n"
          << Describe(*graph);
    }
  }
  EXPECT_GT(changed, NumberOfCases() / 10);
}

// TensorFlow's 8-bit chain, with the chain that shrinks the graph before it in
// some cases.
std::string RandomQuantization(uint32_t seed) {
  Dice dice(seed);
  std::vector<std::string> chain;
  if (dice.OneIn(2)) chain.push_back("remove_nodes(op=Identity)");
  if (dice.OneIn(2)) chain.push_back("fold_constants");
  if (dice.OneIn(2)) chain.push_back("fold_batch_norms fold_old_batch_norms");
  if (dice.OneIn(2)) chain.push_back("backport_concatv2");
  if (dice.OneIn(2)) chain.push_back("fuse_convolutions");
  chain.push_back(dice.OneIn(3) ? "round_weights" : "");
  chain.push_back(absl::StrCat(
      "quantize_weights(minimum_size=", dice.OneIn(2) ? 1 : 16, ")"));
  chain.push_back(dice.OneIn(4)
                      ? "quantize_nodes(fallback_min=-20, fallback_max=20)"
                      : "quantize_nodes");
  if (dice.OneIn(3)) chain.push_back("merge_duplicate_nodes");
  chain.push_back("strip_unused_nodes sort_by_execution_order");
  return absl::StrJoin(chain, " ");
}

TEST(RandomPipelinesTest, QuantizedGraphsRun) {
  int eight_bit = 0;
  for (uint32_t number = 0; number < NumberOfCases() / 4; ++number) {
    std::vector<std::string> outputs;
    const Graph original = GraphMaker(number).Make(&outputs).Build();
    const std::string transforms = RandomQuantization(number);
    const std::string of_case =
        absl::StrCat("case ", number, ": ", transforms, "\noutputs ",
                     absl::StrJoin(outputs, ","), " of\n", Describe(original));
    const auto before = Answers(original, outputs);
    ASSERT_TRUE(before.ok()) << before.status() << "\n" << of_case;
    Graph graph = original.Clone();
    const auto report =
        Apply(&graph, transforms, "in", absl::StrJoin(outputs, ","));
    ASSERT_TRUE(report.ok()) << report.status() << "\n" << of_case;
    for (graph::NodeId id : graph.Ids()) {
      eight_bit += graph.node(id).op() == "QuantizedConv2D" ? 1 : 0;
    }
    const auto after = Answers(graph, outputs);
    ASSERT_TRUE(after.ok()) << after.status() << "\n"
                            << of_case << "which became\n"
                            << Describe(graph);
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE((*before)[i].shape() == (*after)[i].shape())
          << "output " << outputs[i] << " of " << of_case;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(eight_bit, 0);
}

// One change that no tool would make.
void Damage(Dice* dice, tensorflow::GraphDef* def) {
  const auto any_node = [&] {
    return def->mutable_node(dice->Roll(def->node_size()));
  };
  tensorflow::NodeDef* node = any_node();
  tensorflow::NodeDef* other = any_node();
  switch (dice->Roll(8)) {
    case 0:
      if (node->input_size() == 0) return;
      return node->set_input(
          dice->Roll(node->input_size()),
          absl::StrCat(other->name(),
                       dice->OneIn(3) ? absl::StrCat(":", dice->Roll(3)) : ""));
    case 1:
      return node->set_op(other->op());
    case 2:
      if (node->attr().empty()) return;
      node->mutable_attr()->erase(node->attr().begin()->first);
      return;
    case 3:
      for (auto& [name, value] : *node->mutable_attr()) {
        if (value.has_list() && value.list().i_size() > 0) {
          value.mutable_list()->set_i(0, dice->Roll(5) - 2);
        } else if (value.has_tensor()) {
          auto* shape = value.mutable_tensor()->mutable_tensor_shape();
          if (dice->OneIn(2)) {
            shape->add_dim()->set_size(dice->Roll(4) - 1);
          } else if (shape->dim_size() > 0) {
            shape->mutable_dim(0)->set_size(
                dice->OneIn(2) ? dice->Roll(4) : int64_t{1} << dice->Roll(63));
          }
        }
      }
      return;
    case 4:
      node->add_input(absl::StrCat(dice->OneIn(2) ? "^" : "", other->name()));
      return;
    case 5:
      if (node->input_size() > 0) node->mutable_input()->RemoveLast();
      return;
    case 6:
      *node->mutable_attr() = other->attr();
      return;
    default:
      for (auto& [name, value] : *node->mutable_attr()) {
        if (value.has_tensor() && dice->OneIn(2)) {
          value.mutable_tensor()->add_float_val(dice->OneIn(2) ? NAN : 1e38f);
        }
      }
  }
}

TEST(RandomPipelinesTest, DamagedGraphsStopNothing) {
  for (uint32_t number = 0; number < NumberOfCases() / 4; ++number) {
    std::vector<std::string> outputs;
    tensorflow::GraphDef def = GraphMaker(number).Make(&outputs).def();
    Dice dice(number + 2000000);
    const int times = 1 + dice.Roll(4);
    for (int i = 0; i < times; ++i) Damage(&dice, &def);
    absl::StatusOr<Graph> graph = Graph::FromDef(def);
    if (!graph.ok()) continue;
    PipelineOptions options;
    options.verify = dice.OneIn(2);
    const std::string transforms =
        dice.OneIn(3) ? RandomQuantization(number) : RandomTransforms(number);
    // What comes of it does not matter; that it comes does. It is not run: a
    // loop may have lost its end.
    Apply(&*graph, transforms, "in", absl::StrJoin(outputs, ","), options)
        .status()
        .IgnoreError();
    EXPECT_TRUE(Graph::FromDef(graph->ToDef()).ok())
        << "case " << number << ": " << transforms;
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
