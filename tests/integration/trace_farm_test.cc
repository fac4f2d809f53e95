// The trace of a pipeline's job, through real processes: from optctl's
// environment to a collector.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/integration/farm.h"
#include "tests/support/trace_collector.h"

namespace optfarm::integration {
namespace {

using ::optfarm::testing::SeenSpan;
using ::optfarm::testing::TraceCollector;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(TraceFarmTest, APipelinesSpanIsTheParentOfItsJobs) {
  TraceCollector collector;
  const std::string folder = testing::FreshFolder();
  OPTFARM_ASSERT_OK(MakeFolders(folder));
  const std::string headers = JoinPath(folder, "headers");
  OPTFARM_ASSERT_OK(WriteFileAtomically(headers, "Api-Key: very-secret\n"));
  Farm farm({"--otlp_endpoint=" + collector.endpoint(),
             "--otlp_headers_file=" + headers});
  const auto worker = farm.StartWorker("w1");
  const auto agent = farm.StartAgent("dev1");

  SubprocessOptions options;
  options.argv = {testing::ProgramPath("optctl"),
                  "submit",
                  testing::SourcePath("examples/digits/digits.pb"),
                  "--recipe=weights8",
                  "--device=dev1",
                  "--threads=1",
                  "--wait",
                  "--server=" + farm.address()};
  options.output_file = JoinPath(folder, "log");
  options.environment = {
      {"XDG_CONFIG_HOME", folder},
      {"TRACEPARENT",
       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}};
  auto child = Subprocess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto exit = child->Wait(kPatience);
  ASSERT_TRUE(exit.has_value() && exit->exit_code == 0)
      << ReadFile(options.output_file).value_or("");

  const auto requests = collector.Await(1);
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_EQ(requests[0].headers.at("Api-Key"), "very-secret");
  std::map<std::string, std::string> services;
  for (const SeenSpan& seen : TraceCollector::SpansOf(requests[0])) {
    EXPECT_EQ(absl::BytesToHexString(seen.span.trace_id()),
              "0af7651916cd43dd8448eb211c80319c");
    services[seen.span.name()] = seen.service + " " + seen.instance;
    if (seen.span.name() != "job") continue;
    EXPECT_EQ(absl::BytesToHexString(seen.span.parent_span_id()),
              "b7ad6b7169203331");
    EXPECT_EQ(seen.Attribute("optfarm.job.state"), "SUCCEEDED");
  }
  EXPECT_EQ(services["optimize attempt"], "optfarm-worker w1");
  EXPECT_EQ(services["benchmark attempt"], "optfarm-agent dev1");
  EXPECT_THAT(farm.server().Log(), Not(HasSubstr("very-secret")));
}

}  // namespace
}  // namespace optfarm::integration
