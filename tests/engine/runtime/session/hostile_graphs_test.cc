// Graphs that nobody meant: nodes wired at random, and real graphs with bytes
// changed. Whatever they are, loading and running them ends, within the memory
// and the time that the caller set, with an answer or an error. The time is
// counted in looks at a clock, so every machine runs the same steps.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/runtime/session/session.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/ticking_clock.h"

namespace optfarm::runtime {
namespace {

using Random = std::mt19937;

int Below(int limit, Random* random) {
  return static_cast<int>((*random)() % static_cast<uint32_t>(limit));
}

struct WildOp {
  const char* op;
  int inputs;
  int outputs;
};

// Whatever moves values around, with a little arithmetic between.
constexpr WildOp kWildOps[] = {
    {"Enter", 1, 1},
    {"Enter", 1, 1},
    {"Exit", 1, 1},
    {"NextIteration", 1, 1},
    {"NextIteration", 1, 1},
    {"Merge", 2, 2},
    {"Merge", 2, 2},
    {"Switch", 2, 2},
    {"Switch", 2, 2},
    {"LoopCond", 1, 1},
    {"Less", 2, 1},
    {"Add", 2, 1},
    {"Mul", 2, 1},
    {"Identity", 1, 1},
    {"ControlTrigger", 0, 0},
    {"NoOp", 0, 0},
    {"VariableV2", 0, 1},
    {"Assign", 2, 1},
    {"AssignAdd", 2, 1},
    {"TensorArrayV3", 1, 2},
    {"TensorArrayWriteV3", 4, 1},
    {"TensorArrayReadV3", 3, 1},
    {"TensorArrayGatherV3", 3, 1},
    {"StackV2", 1, 1},
    {"StackPushV2", 2, 1},
    {"StackPopV2", 1, 1},
    {"Fill", 2, 1},
    {"ConcatV2", 3, 1},
};

// Ten to thirty nodes; any may read any, before or behind it. A Merge often
// reads a NextIteration, so that real loops come about.
GraphMaker WildGraph(Random* random) {
  GraphMaker g;
  g.Const("float", Float(2)).Const("zero", Int(0)).Const("many", Int(1 << 20));
  g.Const("yes", Bool(true)).Placeholder("fed", tensorflow::DT_FLOAT);
  std::vector<std::pair<std::string, int>> nodes = {
      {"float", 1}, {"zero", 1}, {"many", 1}, {"yes", 1}, {"fed", 1}};
  std::vector<const WildOp*> ops;
  const int count = 10 + Below(20, random);
  for (int i = 0; i < count; ++i) {
    ops.push_back(&kWildOps[Below(std::size(kWildOps), random)]);
    nodes.emplace_back("n" + std::to_string(i), ops.back()->outputs);
  }
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> inputs;
    for (int k = 0; k < ops[i]->inputs; ++k) {
      // Mostly backwards: other edges make cycles, which end at load.
      const int limit = Below(12, random) == 0 || ops[i]->op[0] == 'M'
                            ? static_cast<int>(nodes.size())
                            : i + 5;
      const auto& [name, outputs] = nodes[Below(limit, random)];
      inputs.push_back(name + ":" +
                       std::to_string(Below(std::max(outputs, 1), random)));
    }
    if (Below(8, random) == 0) {
      inputs.push_back("^" + nodes[Below(i + 5, random)].first);
    }
    const DataType types[] = {tensorflow::DT_FLOAT, tensorflow::DT_FLOAT,
                              tensorflow::DT_INT32, tensorflow::DT_BOOL};
    const DataType type = types[Below(4, random)];
    g.Node("n" + std::to_string(i), ops[i]->op, inputs)
        .Type("T", type)
        .Type("dtype", type)
        .Type("elem_type", type)
        .Type("Tidx", tensorflow::DT_INT32)
        .Int("N", 2)
        .Text("frame_name", Below(3, random) == 0 ? "f" : "g")
        .Bool("is_constant", Below(3, random) == 0)
        .Bool("dynamic_size", true)
        .Shape("shape", {});
  }
  return g;
}

// How often a run may look at its clock: a few turns of a loop.
constexpr int kLooks = 100;

struct Outcome {
  int loaded = 0;
  int answered = 0;
  // Ended by their time.
  int out_of_time = 0;
};

void LoadAndRun(const tensorflow::GraphDef& def, const std::string& fetch,
                Outcome* outcome) {
  auto graph = graph::Graph::FromDef(def);
  if (!graph.ok()) return;
  const auto fetches = graph::ParseTensorNames(fetch);
  SessionOptions options;
  options.memory_limit = 8 << 20;
  options.print = [](absl::string_view) {};
  const auto session = Session::Create(*graph, *graph::ParseTensorNames("fed"),
                                       *fetches, options);
  if (!session.ok()) return;
  ++outcome->loaded;
  RunOptions run;
  run.timeout = kLooks * absl::Milliseconds(1);
  run.memory_limit = 8 << 20;
  RunTrace trace;
  run.trace = &trace;
  for (int i = 0; i < 2; ++i) {
    optfarm::testing::TickingClock clock(absl::Milliseconds(1));
    run.clock = &clock;
    const absl::Status status = (*session)->Run({Float(1)}, run).status();
    outcome->answered += status.ok() ? 1 : 0;
    const bool is_over = absl::IsDeadlineExceeded(status);
    outcome->out_of_time += is_over ? 1 : 0;
    // The look that ends a run is among the last; nobody goes on after it.
    EXPECT_LE(clock.looks(), kLooks + 4) << status;
    if (is_over) {
      EXPECT_GT(clock.looks(), kLooks);
    }
    EXPECT_LE(trace.peak_bytes, run.memory_limit);
  }
}

TEST(HostileGraphsTest, NodesWiredAtRandomDoNoHarm) {
  Random random(20240301);
  Outcome outcome;
  for (int i = 0; i < 4000; ++i) {
    const GraphMaker g = WildGraph(&random);
    const int nodes = const_cast<GraphMaker&>(g).def()->node_size();
    const int pick = 5 + Below(nodes - 5, &random);
    const std::string name = "n" + std::to_string(pick - 5);
    LoadAndRun(*const_cast<GraphMaker&>(g).def(), "^" + name, &outcome);
  }
  // The sweep reaches beyond the first checks.
  EXPECT_GT(outcome.loaded, 300);
  EXPECT_GT(outcome.answered, 100);
}

// A loop with a tensor array, some bytes of it changed.
TEST(HostileGraphsTest, ChangedBytesDoNoHarm) {
  GraphMaker g;
  g.Placeholder("fed", tensorflow::DT_FLOAT);
  g.Const("zero", Int(0)).Const("five", Int(5));
  constexpr auto kInt32 = tensorflow::DT_INT32;
  g.Enter("limit", "five", "f", kInt32, true);
  g.Node("array", "TensorArrayV3", {"five"}).Type("dtype", kInt32);
  g.Enter("handle", "array", "f", tensorflow::DT_RESOURCE, true);
  g.Math("less", "Less", {"i/merge", "limit"}, kInt32);
  g.Node("cond", "LoopCond", {"less"});
  g.Const("one", Int(1), {"^i/switch"});
  g.Math("next", "Add", {"i/switch:1", "one"}, kInt32);
  g.Node("write", "TensorArrayWriteV3",
         {"handle", "i/switch:1", "i/switch:1", "flow/switch:1"})
      .Type("T", kInt32);
  g.LoopVariable("i", "zero", "f", "cond", "next", kInt32);
  g.LoopVariable("flow", "array:1", "f", "cond", "write");
  g.Node("out", "TensorArrayGatherV3", {"array", "i/exit", "flow/exit"})
      .Type("dtype", kInt32);
  const std::string bytes = g.def()->SerializeAsString();
  Random random(20240302);
  Outcome outcome;
  for (int i = 0; i < 4000; ++i) {
    std::string changed = bytes;
    const int changes = 1 + Below(4, &random);
    for (int k = 0; k < changes; ++k) {
      changed[Below(static_cast<int>(bytes.size()), &random)] =
          static_cast<char>(random());
    }
    tensorflow::GraphDef def;
    if (!def.ParseFromString(changed)) continue;
    LoadAndRun(def, "flow/exit", &outcome);
  }
  EXPECT_GT(outcome.answered, 100);
  // Loops that never end.
  EXPECT_GT(outcome.out_of_time, 0);
}

}  // namespace
}  // namespace optfarm::runtime
