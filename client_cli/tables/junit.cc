#include "client_cli/tables/junit.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
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
};

// For text and attribute values. Characters that XML 1.0 cannot hold at all
// become '?'.
std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped.append("&lt;");
        break;
      case '>':
        escaped.append("&gt;");
        break;
      case '&':
        escaped.append("&amp;");
        break;
      case '"':
        escaped.append("&quot;");
        break;
      case '\n':
        escaped.append("&#10;");
        break;
      default: {
        const bool control = absl::ascii_iscntrl(static_cast<unsigned char>(c));
        escaped.push_back(control && c != '\t' ? '?' : c);
      }
    }
  }
  return escaped;
}

std::string Seconds(absl::Duration time) {
  return absl::StrFormat("%.3f", absl::ToDoubleSeconds(time));
}

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

std::vector<Case> CasesOf(const v1::Job& job) {
  std::vector<Case> cases;
  for (const v1::Task& task : job.tasks()) cases.push_back(OfTask(task));
  for (const v1::GateResult& gate : job.gates()) cases.push_back(OfGate(gate));
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

std::string Element(const Case& one, absl::string_view class_name) {
  std::string xml = absl::StrCat(
      "    <testcase classname=\"", Escaped(class_name), ".", one.group,
      "\" name=\"", Escaped(one.name), "\" time=\"", Seconds(one.time), "\"");
  if (one.outcome.empty()) return absl::StrCat(xml, "/>\n");
  absl::StrAppend(&xml, ">\n      <", one.outcome);
  if (!one.kind.empty()) {
    absl::StrAppend(&xml, " type=\"", Escaped(one.kind), "\"");
  }
  return absl::StrCat(xml, " message=\"", Escaped(one.message),
                      "\"/>\n    </testcase>\n");
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
  std::string xml = absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  "
      "<testsuite name=\"",
      Escaped(name), "\" id=\"", Escaped(job.job_id()), "\" tests=\"",
      cases.size(), "\" failures=\"", count("failure"), "\" errors=\"",
      count("error"), "\" skipped=\"", count("skipped"), "\" time=\"",
      Seconds(Between(job.create_time(), job.end_time())), "\" timestamp=\"",
      absl::FormatTime("%Y-%m-%dT%H:%M:%S",
                       rpc::FromTimestamp(job.create_time()),
                       absl::UTCTimeZone()),
      "\">\n");
  for (const Case& one : cases) {
    xml.append(Element(one, absl::StrCat("optfarm.", name)));
  }
  return absl::StrCat(xml, "  </testsuite>\n</testsuites>\n");
}

}  // namespace optfarm::client_cli
