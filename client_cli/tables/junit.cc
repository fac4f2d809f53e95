#include "client_cli/tables/junit.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/xml_writer.h"
#include "client_cli/tables/noise_text.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

struct Case {
  std::string group;
  std::string name;
  absl::Duration time = absl::ZeroDuration();
  // Empty: it passed. "failure": what was sent is not good enough. "error": it
  // could not be found out. "skipped".
  std::string outcome;
  std::string kind;
  std::string message;
  // Of a test that passed: what it printed.
  std::string output;
};

absl::Duration Between(const google::protobuf::Timestamp& begin,
                       const google::protobuf::Timestamp& end) {
  return std::max(rpc::FromTimestamp(end) - rpc::FromTimestamp(begin),
                  absl::ZeroDuration());
}

void SetFailure(const v1::Failure& failure, Case& one) {
  one.outcome = failure.kind() == v1::Failure::USER ? "failure" : "error";
  one.kind = failure.code();
  one.message = failure.message();
}

Case OfTask(const v1::Task& task) {
  Case one;
  one.group = "task";
  one.name = task.kind() == v1::OPTIMIZE
                 ? "optimize"
                 : absl::StrCat("benchmark on ", task.device());
  if (task.has_start_time() && task.has_end_time()) {
    one.time = Between(task.start_time(), task.end_time());
  }
  if (task.state() == v1::TASK_FAILED) {
    SetFailure(task.failure(), one);
  } else if (task.state() != v1::TASK_DONE) {
    one.outcome = "skipped";
    one.message = "the job ended without it";
  }
  return one;
}

Case OfGate(const v1::GateResult& gate) {
  Case one;
  one.group = "gate";
  one.name = gate.name();
  if (!gate.passed()) {
    one.outcome = "failure";
    one.kind = "GATE_FAILED";
    one.message =
        absl::StrFormat("value %.6g, bound %.6g", gate.value(), gate.bound());
    if (!gate.message().empty()) {
      absl::StrAppend(&one.message, ": ", gate.message());
    }
  }
  return one;
}

Case OfVerdict(const v1::ShippingVerdict& verdict) {
  Case one;
  one.group = "verdict";
  one.name = verdict.variant();
  if (verdict.threads() > 0) {
    absl::StrAppend(&one.name, " on ", verdict.device(), ", ",
                    ThreadsText(verdict.threads()));
  }
  if (verdict.answer() == v1::ShippingVerdict::YES) {
    one.output = verdict.text();
  } else {
    one.outcome = "skipped";
    one.message = verdict.text();
  }
  return one;
}

std::vector<Case> CasesOf(const v1::Job& job) {
  std::vector<Case> cases;
  for (const v1::Task& task : job.tasks()) cases.push_back(OfTask(task));
  for (const v1::GateResult& gate : job.gates()) cases.push_back(OfGate(gate));
  for (const v1::ShippingVerdict& verdict : job.verdicts()) {
    if (verdict.answer() != v1::ShippingVerdict::BASELINE) {
      cases.push_back(OfVerdict(verdict));
    }
  }
  const bool told =
      std::any_of(cases.begin(), cases.end(), [](const Case& one) {
        return one.outcome == "failure" || one.outcome == "error";
      });
  if (job.state() != v1::SUCCEEDED && !told) {
    // A deadline of the whole job, or somebody cancelled it.
    Case one;
    one.group = "job";
    one.name = v1::JobState_Name(job.state());
    SetFailure(job.failure(), one);
    one.outcome = "error";
    cases.push_back(std::move(one));
  }
  return cases;
}

void AddCase(const Case& one, absl::string_view class_name, XmlWriter& xml) {
  xml.Begin("testcase")
      .Attribute("classname", absl::StrCat(class_name, ".", one.group))
      .Attribute("name", one.name)
      .Attribute("time", absl::ToDoubleSeconds(one.time), 3);
  if (!one.outcome.empty()) {
    xml.Begin(one.outcome);
    if (!one.kind.empty()) xml.Attribute("type", one.kind);
    xml.Attribute("message", one.message).End();
  }
  if (!one.output.empty()) {
    xml.Begin("system-out").Text(one.output).End();
  }
  xml.End();
}

}  // namespace

std::string JUnitXml(const v1::Job& job) {
  const std::string name =
      absl::StrCat(job.spec().model().name(), " ",
                   job.spec().has_recipe() ? job.spec().recipe().name()
                                           : job.spec().recipe_name());
  const std::vector<Case> cases = CasesOf(job);
  const auto count = [&](absl::string_view outcome) {
    return std::count_if(cases.begin(), cases.end(), [&](const Case& one) {
      return one.outcome == outcome;
    });
  };
  std::string document = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  XmlWriter xml(document);
  xml.Begin("testsuites")
      .Begin("testsuite")
      .Attribute("name", name)
      .Attribute("id", job.job_id())
      .Attribute("tests", cases.size())
      .Attribute("failures", count("failure"))
      .Attribute("errors", count("error"))
      .Attribute("skipped", count("skipped"))
      .Attribute(
          "time",
          absl::ToDoubleSeconds(Between(job.create_time(), job.end_time())), 3)
      .Attribute("timestamp",
                 absl::FormatTime("%Y-%m-%dT%H:%M:%S",
                                  rpc::FromTimestamp(job.create_time()),
                                  absl::UTCTimeZone()));
  for (const Case& one : cases)
    AddCase(one, absl::StrCat("optfarm.", name), xml);
  xml.End().End();
  return document;
}

}  // namespace optfarm::client_cli
