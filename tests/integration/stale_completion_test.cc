// Exactly one result: the test is two workers itself, of which the first loses
// its lease and comes back with a completion too late.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/integration/farm.h"

namespace optfarm::integration {
namespace {

class HandWorker {
 public:
  HandWorker(Farm* farm, const std::string& name) : farm_(farm) {
    request_.set_participant_id(name);
    request_.set_name(name);
    request_.set_kind(v1::SynchronizeRequest::WORKER);
    v1::Recipe& recipe = *request_.add_builtin_recipes();
    recipe.set_name("plain");
    recipe.set_transform_string("sort_by_execution_order");
  }

  v1::SynchronizeResponse Call(int free_slots) {
    request_.set_free_slots(free_slots);
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    const absl::Status status = rpc::FromGrpc(
        farm_->work()->Synchronize(&context, request_, &response));
    EXPECT_TRUE(status.ok()) << status;
    return response;
  }

  // Asks until there is a lease, and holds it.
  v1::LeasedTask AwaitLease() {
    v1::SynchronizeResponse response;
    EXPECT_TRUE(Await([&] {
      response = Call(1);
      return response.new_tasks_size() > 0;
    }));
    if (response.new_tasks().empty()) return {};
    v1::HeldTask& held = *request_.add_held();
    held.set_task_id(response.new_tasks(0).task_id());
    held.set_attempt(response.new_tasks(0).attempt());
    return response.new_tasks(0);
  }

  // Reports success with `graph` as the result.
  v1::TaskVerdict Complete(const std::string& graph) {
    const auto digest = rpc::UploadBytes(farm_->models(), graph);
    EXPECT_TRUE(digest.ok()) << digest.status();
    v1::Report& report =
        *request_.mutable_held(0)->mutable_completion()->mutable_report();
    report.set_passed(true);
    *report.mutable_optimized_model() = *digest;
    v1::Artifact& artifact = *report.add_artifacts();
    artifact.set_name("optimized.pb");
    *artifact.mutable_digest() = *digest;
    const v1::SynchronizeResponse response = Call(0);
    EXPECT_EQ(response.verdicts_size(), 1);
    return response.verdicts(0);
  }

 private:
  Farm* const farm_;
  v1::SynchronizeRequest request_;
};

TEST(StaleCompletionTest, OnlyTheCurrentAttemptsResultIsTaken) {
  Farm farm;
  HandWorker first(&farm, "first");
  HandWorker second(&farm, "second");
  first.Call(0);
  v1::JobSpec spec;
  *spec.mutable_model() =
      farm.Upload(testing::SourcePath("examples/digits/digits.pb"));
  spec.set_recipe_name("plain");
  spec.set_no_cache(true);
  const std::string job_id = farm.Submit(spec);

  const v1::LeasedTask lost = first.AwaitLease();
  EXPECT_EQ(lost.attempt(), 1);
  // The first is silent until its lease is over and the task is given away.
  const v1::LeasedTask current = second.AwaitLease();
  EXPECT_EQ(current.task_id(), lost.task_id());
  EXPECT_EQ(current.attempt(), 2);

  EXPECT_EQ(first.Complete("late").verdict(), v1::TaskVerdict::STALE);
  EXPECT_NE(farm.Get(job_id).state(), v1::SUCCEEDED);
  EXPECT_EQ(second.Complete("good").verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  // Told twice is no harm, and the late one stays refused.
  EXPECT_EQ(second.Complete("good").verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);
  EXPECT_NE(first.Complete("late").verdict(),
            v1::TaskVerdict::COMPLETION_ACCEPTED);

  const v1::Job job = farm.AwaitEnd(job_id);
  EXPECT_EQ(job.state(), v1::SUCCEEDED);
  EXPECT_EQ(farm.Artifact(job, "optimized.pb"), "good");
}

}  // namespace
}  // namespace optfarm::integration
