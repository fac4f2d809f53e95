#ifdef OPTFARM_FAST_KERNELS
#include "engine/runtime/plan/plan_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/fusion/fusions.h"
#include "engine/runtime/plan/executor.h"
#include "engine/runtime/plan/planner.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::testing::ElementsAre;

// Makes Neg and the Relu behind it one step that runs both.
void FuseNegAndRelu(const CpuFeatures&, PlanEditor* plan) {
  for (int i = 0; i < plan->step_count(); ++i) {
    const Step* neg = plan->step(i);
    if (neg == nullptr || neg->op != "Neg") continue;
    const int relu = plan->OnlyReaderOf(neg->outputs[0]);
    if (relu == kNoStep || plan->step(relu)->op != "Relu") continue;
    const std::vector<int> members = {i, relu};
    const std::vector<int> inputs = neg->inputs;
    const std::vector<int> outputs = plan->step(relu)->outputs;
    if (!plan->MayFuse(members, outputs)) continue;
    auto chain =
        std::make_shared<StepChain>(plan->TakeChain(members, inputs, outputs));
    plan->Fuse(members, {MakeKernel([chain](KernelContext* context) {
                           return chain->Run(context);
                         }),
                         inputs, outputs, 1000});
  }
}

constexpr Fusion kNegAndRelu = {"neg_and_relu", "Neg Relu", "both as one step",
                                FuseNegAndRelu};
constexpr const Fusion* kFusions[] = {&kNegAndRelu};

struct Planned {
  ExecutionPlan plan;
  std::vector<FusedNodes> taken = {};
  std::unique_ptr<ThreadPool> pool = std::make_unique<ThreadPool>(1);
  std::vector<std::string> Ops() const {
    std::vector<std::string> ops;
    for (const Step& step : plan.steps) ops.push_back(step.op);
    return ops;
  }
};

absl::StatusOr<Planned> Fuse(const GraphMaker& maker,
                             const std::string& fetches) {
  auto graph = maker.Graph();
  if (!graph.ok()) return graph.status();
  const auto feeds = *graph::ParseTensorNames("x");
  const auto wanted = *graph::ParseTensorNames(fetches);
  const SessionOptions options;
  auto plan = MakePlan(*graph, {feeds, wanted, options});
  if (!plan.ok()) return plan.status();
  Planned planned{*std::move(plan)};
  WeightLedger weights;
  RunFusions(kFusions, CpuFeatures(), &planned.plan, &weights, &planned.taken);
  PlanLifetimes(true, &planned.plan);
  return planned;
}

GraphMaker NegAndRelu() {
  GraphMaker g;
  g.Placeholder("x", tensorflow::DT_FLOAT);
  g.Math("neg", "Neg", {"x"}).Math("y", "Relu", {"neg"});
  return g;
}

TEST(PlanEditorTest, AFusedStepHasTheLastNodesNameAndAllOps) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Planned planned, Fuse(NegAndRelu(), "y"));
  ASSERT_THAT(planned.Ops(), ElementsAre("Neg+Relu"));
  EXPECT_EQ(planned.plan.steps[0].name, "y");
  EXPECT_THAT(planned.plan.steps[0].fused_names, ElementsAre("neg", "y"));
  EXPECT_EQ(planned.plan.constant_bytes, 1000);
}

TEST(PlanEditorTest, WhatAFusionTookIsTold) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Planned planned, Fuse(NegAndRelu(), "y"));
  ASSERT_EQ(planned.taken.size(), 1);
  const FusedNodes& taken = planned.taken[0];
  EXPECT_EQ(taken.fusion, "neg_and_relu");
  EXPECT_EQ(taken.replacement, "both as one step");
  EXPECT_THAT(taken.nodes, ElementsAre("neg", "y"));
  EXPECT_EQ(taken.step, "y");
  EXPECT_EQ(taken.op, "Neg+Relu");
}

TEST(PlanEditorTest, AChainRunsTheStepsThatWereReplaced) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Planned planned, Fuse(NegAndRelu(), "y"));
  std::vector<Tensor> slots(planned.plan.initial.size());
  slots[planned.plan.feed_slots[0]] = Tensor::Scalar(-2.5f);
  OPTFARM_ASSERT_OK(RunStep(planned.plan, planned.plan.steps[0],
                            {planned.pool.get(), nullptr, nullptr},
                            slots.data(), nullptr));
  EXPECT_EQ(*slots[planned.plan.fetch_slots[0]].data<float>(), 2.5f);
}

TEST(PlanEditorTest, AFetchedValueIsKept) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Planned planned,
                               Fuse(NegAndRelu(), "y,neg"));
  EXPECT_THAT(planned.Ops(), ElementsAre("Neg", "Relu"));
}

TEST(PlanEditorTest, AValueWithAnotherReaderIsKept) {
  GraphMaker g = NegAndRelu();
  g.Math("z", "Add", {"neg", "y"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Planned planned, Fuse(g, "z"));
  EXPECT_THAT(planned.Ops(), ElementsAre("Neg", "Relu", "Add"));
}

TEST(PlanEditorTest, AValueThatIsWaitedForIsKept) {
  GraphMaker g = NegAndRelu();
  g.Math("z", "Abs", {"x", "^neg"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Planned planned, Fuse(g, "y,z"));
  EXPECT_THAT(planned.Ops(), ElementsAre("Neg", "Relu", "Abs"));
}

TEST(PlanEditorTest, AFusedStepWaitsForWhatItsPartsWaitedFor) {
  GraphMaker g;
  g.Placeholder("x", tensorflow::DT_FLOAT);
  g.Math("first", "Abs", {"x"});
  g.Math("neg", "Neg", {"x", "^first"}).Math("y", "Relu", {"neg"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Planned planned, Fuse(g, "y"));
  ASSERT_THAT(planned.Ops(), ElementsAre("Abs", "Neg+Relu"));
  EXPECT_EQ(planned.plan.steps[1].controls, planned.plan.steps[0].outputs);
}

TEST(PlanEditorTest, StepsOfDifferentLoopsStayApart) {
  GraphMaker g;
  g.Placeholder("x", tensorflow::DT_FLOAT).Const("ten", Tensor::Scalar(10.f));
  g.Enter("limit", "ten", "while", tensorflow::DT_FLOAT, true);
  g.Math("less", "Less", {"i/merge", "limit"});
  g.Node("cond", "LoopCond", {"less"});
  g.Math("next", "Exp", {"neg"}).Math("neg", "Neg", {"i/switch:1"});
  g.LoopVariable("i", "x", "while", "cond", "next");
  g.Math("out", "Neg", {"i/exit"}).Math("y", "Relu", {"out"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const Planned planned, Fuse(g, "y"));
  EXPECT_EQ(planned.plan.steps.back().op, "Neg+Relu");
  EXPECT_EQ(planned.plan.steps[planned.plan.loops[0].end].kind,
            StepKind::kLoopEnd);
}

}  // namespace
}  // namespace optfarm::runtime
#endif
