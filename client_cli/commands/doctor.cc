// optctl doctor: what is wrong with an installation, and what to do about it.

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/contexts.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/command/server_look.h"
#include "client_cli/commands/commands.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

constexpr absl::Duration kSkewNoticed = absl::Seconds(5);
constexpr absl::Duration kSkewHarmful = absl::Minutes(5);
// Of the smallest question: a commit takes several, a file one for each part.
constexpr absl::Duration kSlowDatabase = absl::Milliseconds(100);
constexpr absl::Duration kSlowBlobs = absl::Seconds(1);
constexpr absl::Duration kExpiresSoon = absl::Hours(24 * 7);
// UNITS: bytes. What a server wants to be free for its uploads, and more.
constexpr uint64_t kLittleSpace = uint64_t{1} << 30;

enum class Verdict { kGood, kRemark, kWrong };

struct Finding {
  std::string what;
  Verdict verdict = Verdict::kGood;
  // What was seen; for what is not good, what to do.
  std::string text;
};

// Collects findings. THREADS: one.
class Findings {
 public:
  void Good(absl::string_view what, absl::string_view text) {
    Add(what, Verdict::kGood, text);
  }
  void Remark(absl::string_view what, absl::string_view text) {
    Add(what, Verdict::kRemark, text);
  }
  void Wrong(absl::string_view what, absl::string_view text) {
    Add(what, Verdict::kWrong, text);
  }
  const std::vector<Finding>& all() const { return all_; }

 private:
  void Add(absl::string_view what, Verdict verdict, absl::string_view text) {
    all_.push_back({std::string(what), verdict, std::string(text)});
  }
  std::vector<Finding> all_;
};

const char* WordOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "ok";
    case Verdict::kRemark:
      return "look";
    case Verdict::kWrong:
      return "WRONG";
  }
  return "";
}

// Why a first call did not get through.
void ExplainNoAnswer(const absl::Status& status, Findings& findings) {
  const std::string text(status.message());
  const std::string lower = absl::AsciiStrToLower(text);
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    findings.Good("server", "it answers");
    return findings.Wrong("token", text);
  }
  if (absl::StrContains(lower, "handshake") ||
      absl::StrContains(lower, "certificate")) {
    return findings.Wrong(
        "TLS", absl::StrCat(text,
                            "; --tls_ca must name the CA that signed the "
                            "server's certificate, and the server must use "
                            "TLS"));
  }
  if (absl::StrContains(lower, "closed") || absl::StrContains(lower, "reset")) {
    return findings.Wrong(
        "TLS", absl::StrCat(text, "; if the server uses TLS, give --tls_ca"));
  }
  if (absl::IsUnimplemented(status)) {
    return findings.Wrong("version",
                          "the server is older than this optctl and does not "
                          "support this call; upgrade the server");
  }
  findings.Wrong("server", text);
}

void CheckVersion(const v1::WhoAmIResponse& who, Findings& findings) {
  if (who.version() == OPTFARM_VERSION) {
    return findings.Good("version", who.version());
  }
  findings.Remark(
      "version",
      absl::StrCat("the server is ", who.version(), " and this optctl is ",
                   OPTFARM_VERSION, "; upgrade the older one"));
}

// `what`: "server a:7070 clock".
void CheckClock(const std::string& what, absl::Time server, absl::Time now,
                Findings& findings) {
  const absl::Duration skew = server - now;
  const absl::Duration shown =
      absl::Trunc(absl::AbsDuration(skew), absl::Milliseconds(100));
  const std::string text =
      shown == absl::ZeroDuration()
          ? "the server's clock and this machine's agree"
          : absl::StrCat("the server's clock is ", absl::FormatDuration(shown),
                         skew < absl::ZeroDuration() ? " behind" : " ahead of",
                         " this machine's");
  if (absl::AbsDuration(skew) > kSkewHarmful) {
    findings.Wrong(what, absl::StrCat(text, "; set both by NTP"));
  } else if (absl::AbsDuration(skew) > kSkewNoticed) {
    findings.Remark(what, absl::StrCat(text, "; set both by NTP"));
  } else {
    findings.Good(what, text);
  }
}

void CheckToken(const v1::WhoAmIResponse& who, absl::Time now,
                Findings& findings) {
  std::vector<std::string> scopes;
  for (const int scope : who.scopes()) {
    scopes.push_back(absl::AsciiStrToLower(
        v1::Access::Scope_Name(static_cast<v1::Access::Scope>(scope))));
  }
  std::string text = absl::StrCat(
      who.name(), ", may ", absl::StrJoin(scopes, ", "),
      who.project().empty() ? ", sees every project"
                            : absl::StrCat(", project ", who.project()));
  if (who.name() == "anybody") {
    return findings.Remark(
        "token",
        "the server requires none: anybody who reaches it may do everything; "
        "start it with --token_file unless you are its only user");
  }
  if (!who.has_expire_time()) return findings.Good("token", text);
  const absl::Duration left = rpc::FromTimestamp(who.expire_time()) - now;
  absl::StrAppend(&text, ", expires in ",
                  absl::FormatDuration(absl::Trunc(left, absl::Minutes(1))));
  if (left > kExpiresSoon) return findings.Good("token", text);
  findings.Remark("token", absl::StrCat(text,
                                        "; create a new one with optctl token "
                                        "create"));
}

void CheckFarm(const v1::WhoAmIResponse& who, Findings& findings) {
  if (who.workers() > 0) {
    findings.Good("workers", absl::StrCat(who.workers(), " at work"));
  } else {
    findings.Wrong("workers",
                   "none has called within a minute, so no job will run; start "
                   "optfarm-worker --server=HOST:PORT");
  }
  if (who.agents() > 0) {
    findings.Good("agents", absl::StrCat(who.agents(), " at work"));
  } else {
    findings.Remark("agents",
                    "none has called within a minute, so there will be no "
                    "benchmarks; start optfarm-agent on a device");
  }
}

void CheckDevices(const v1::ListDevicesResponse& response, Findings& findings) {
  int good = 0;
  for (const v1::Device& device : response.devices()) {
    const std::string what = absl::StrCat("device ", device.info().name());
    switch (device.state()) {
      case v1::Device::OFFLINE:
        findings.Remark(what,
                        "silent; look at its agent and network, or optctl "
                        "devices retire it");
        break;
      case v1::Device::QUARANTINED:
        findings.Remark(
            what, absl::StrCat("quarantined: ", device.state_reason(),
                               "; look at it, then optctl devices enable it"));
        break;
      case v1::Device::DISABLED:
        findings.Remark(what, absl::StrCat("disabled ", device.state_reason()));
        break;
      default:
        ++good;
    }
  }
  if (good > 0) {
    findings.Good("devices", absl::StrCat(good, " available"));
  } else {
    findings.Remark("devices", "none available");
  }
}

void CheckDataDir(const std::string& path, Findings& findings) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return findings.Wrong(
        "data folder",
        absl::StrCat("'", path,
                     "' is not a folder; --data_dir names the server's"));
  }
  if ((info.st_mode & 077) != 0) {
    findings.Wrong("data folder",
                   absl::StrCat("users other than its owner may access '", path,
                                "'; chmod 700 it"));
  } else {
    findings.Good("data folder", "only its owner may access it");
  }
  for (const char* name : {"optfarm.db", "tokens.db", "audit.db"}) {
    const std::string file = JoinPath(path, name);
    if (::stat(file.c_str(), &info) != 0) {
      findings.Remark(name, "not there; no server has used this folder yet");
    } else if ((info.st_mode & 077) != 0) {
      findings.Wrong(name,
                     absl::StrCat("other users may read it; chmod 600 ", file));
    }
  }
  struct statvfs disk;
  if (::statvfs(path.c_str(), &disk) != 0) return;
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  const std::string text = absl::StrCat(free >> 20, " MiB of disk are free");
  if (free < kLittleSpace) {
    findings.Wrong("disk", absl::StrCat(text,
                                        "; free some, or delete old results "
                                        "(--keep_jobs_days)"));
  } else {
    findings.Good("disk", text);
  }
}

// The programs that came with this one.
void CheckPrograms(Findings& findings) {
  std::error_code error;
  const std::filesystem::path own =
      std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  std::vector<std::string> there;
  for (const char* name :
       {"optfarm-server", "optfarm-worker", "optfarm-agent"}) {
    const std::string path = (own.parent_path() / name).string();
    if (::access(path.c_str(), X_OK) == 0) there.emplace_back(name);
  }
  if (there.empty()) {
    return findings.Good("programs", "only optctl is installed here");
  }
  findings.Good("programs", absl::StrCat("optctl, ", absl::StrJoin(there, ", "),
                                         " in ", own.parent_path().string()));
}

std::string Shown(const v1::Dependency& dependency) {
  const absl::Duration latency = rpc::FromProtoDuration(dependency.latency());
  return absl::StrFormat("%s answers in %.1f ms", dependency.engine(),
                         absl::ToDoubleMilliseconds(latency));
}

// What a server says of its database or its files.
void CheckDependency(const std::string& what, const v1::Dependency& dependency,
                     absl::Duration slow, Findings& findings) {
  if (!dependency.has_latency()) {
    return findings.Wrong(
        what, absl::StrCat(dependency.engine(), ": ", dependency.problem()));
  }
  if (rpc::FromProtoDuration(dependency.latency()) < slow) {
    return findings.Good(what, Shown(dependency));
  }
  findings.Remark(
      what, absl::StrCat(Shown(dependency),
                         ", which is slow: every call waits for it; look at "
                         "its load, its disk and the network between"));
}

void CheckSchema(const std::string& what, const v1::ServerState& state,
                 Findings& findings) {
  if (state.schema_step() == 0) return;
  const std::string text =
      absl::StrCat("the database's step ", state.schema_step());
  if (state.schema_step() == state.known_schema_step()) {
    return findings.Good(what, text);
  }
  const bool newer = state.schema_step() > state.known_schema_step();
  findings.Remark(
      what,
      absl::StrCat(text, ", and this server knows ", state.known_schema_step(),
                   newer ? "; upgrade this server before it is restarted"
                         : "; it has not come to it yet"));
}

// What one server says of itself. `at` comes before what is found.
void CheckServer(const std::string& at, const v1::ServerState& state,
                 Findings& findings) {
  CheckDependency(at + "database", state.database(), kSlowDatabase, findings);
  CheckSchema(at + "schema", state, findings);
  CheckDependency(at + "files", state.blobs(), kSlowBlobs, findings);
  if (!state.has_database_time()) return;
  const absl::Duration skew = rpc::FromTimestamp(state.database_time()) -
                              rpc::FromTimestamp(state.time());
  if (absl::AbsDuration(skew) > kSkewNoticed) {
    findings.Remark(
        at + "database",
        absl::StrCat("its clock and the server's are ",
                     absl::FormatDuration(absl::Trunc(absl::AbsDuration(skew),
                                                      absl::Milliseconds(100))),
                     " apart; set both by NTP"));
  }
}

// Whether those that answered agree on who leads. By address: what each said.
void CheckLeader(const std::map<std::string, v1::ServerState>& states,
                 Findings& findings) {
  std::vector<std::string> leaders;
  std::set<std::string> known;
  for (const auto& [address, state] : states) {
    if (state.leads()) leaders.push_back(address);
    if (!state.leader_address().empty()) known.insert(state.leader_address());
  }
  if (known.empty()) {
    return findings.Wrong("leader",
                          "no server leads, so no call is served; look at the "
                          "servers' logs and at the database");
  }
  if (known.size() > 1 || leaders.size() > 1) {
    return findings.Remark(
        "leader", absl::StrCat("the servers name ", absl::StrJoin(known, ", "),
                               ": it changes right now, or they have not the "
                               "same --database; look again in ten seconds"));
  }
  if (leaders.empty()) {
    return findings.Remark(
        "leader", absl::StrCat(*known.begin(),
                               " leads, which --server does not name; name "
                               "all servers"));
  }
  const bool same = leaders[0] == *known.begin();
  findings.Good("leader",
                same ? leaders[0]
                     : absl::StrCat(leaders[0], ", which the others reach at ",
                                    *known.begin()));
}

void CheckVersions(const std::map<std::string, v1::ServerState>& states,
                   Findings& findings) {
  std::set<std::string> versions;
  for (const auto& [_, state] : states) versions.insert(state.version());
  if (versions.size() < 2) return;
  findings.Remark("versions", absl::StrCat("the servers are ",
                                           absl::StrJoin(versions, ", "),
                                           "; upgrade all of them"));
}

class Doctor final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("data_dir", "FOLDER",
                "Also check this data folder of a server on this machine.",
                &data_dir_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    Findings findings;
    CheckPrograms(findings);
    if (!data_dir_.empty()) CheckDataDir(data_dir_, findings);
    // An unreadable token file is found here.
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_RETURN_IF_ERROR(AskEachServer(context, findings));
    Ask(*client, context.clock->Now(), findings);
    Table table({{"what", "WHAT"},
                 {"verdict", "VERDICT"},
                 {.name = "text", .title = "TEXT", .folds = true}});
    bool wrong = false;
    for (const Finding& finding : findings.all()) {
      wrong |= finding.verdict == Verdict::kWrong;
      table.AddRow({Cell::Text(finding.what),
                    Cell::Text(WordOf(finding.verdict)),
                    Cell::Text(finding.text)});
    }
    *context.out << table.ToFormat(context.format);
    return wrong ? ExitCode::kJobFailed : ExitCode::kOk;
  }

 private:
  // Each for itself, whichever leads.
  static absl::Status AskEachServer(const CommandContext& context,
                                    Findings& findings) {
    if (context.global == nullptr) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(FarmAddress address,
                             FindFarm(*context.global, ProcessEnvironment));
    const std::vector<std::string> servers =
        absl::StrSplit(address.server, ',');
    std::map<std::string, v1::ServerState> states;
    for (const std::string& server : servers) {
      address.server = server;
      const auto state = LookAtServer(address);
      const std::string what = absl::StrCat("server ", server);
      if (absl::IsUnimplemented(state.status())) {
        findings.Remark(what, state.status().message());
      } else if (!state.ok() && servers.size() > 1) {
        findings.Wrong(what, state.status().message());
      }
      // Of one alone, what the farm's calls say is enough.
      if (!state.ok()) continue;
      states[server] = *state;
      if (servers.size() == 1) {
        CheckServer("", *state, findings);
        continue;
      }
      findings.Good(what, state->leads()
                              ? absl::StrCat("leads, term ", state->term())
                              : "stands by");
      CheckClock(what + " clock", rpc::FromTimestamp(state->time()),
                 context.clock->Now(), findings);
      CheckServer(what + " ", *state, findings);
    }
    if (servers.size() == 1 || states.empty()) return absl::OkStatus();
    CheckLeader(states, findings);
    CheckVersions(states, findings);
    return absl::OkStatus();
  }

  static void Ask(FarmClient& client, absl::Time now, Findings& findings) {
    const absl::StatusOr<v1::WhoAmIResponse> who = client.WhoAmI();
    if (!who.ok()) return ExplainNoAnswer(who.status(), findings);
    findings.Good("server", "it answers");
    CheckVersion(*who, findings);
    CheckClock("clock", rpc::FromTimestamp(who->time()), now, findings);
    CheckToken(*who, now, findings);
    CheckFarm(*who, findings);
    v1::ListDevicesRequest request;
    request.set_page_size(1000);
    const auto devices = client.ListDevices(request);
    if (devices.ok()) {
      CheckDevices(*devices, findings);
    } else if (!absl::IsPermissionDenied(devices.status())) {
      findings.Wrong("devices", devices.status().message());
    }
  }

  std::string data_dir_;
};

}  // namespace

CommandInfo DoctorCommand() {
  return {"doctor", "Check this installation and report problems.",
          "Checks the server, its version and clock, its database and files, "
          "the token, TLS, workers, agents and devices; with --data_dir also a "
          "server's folder on this machine. Of several servers it asks each, "
          "and who leads. The exit code is 1 if something is wrong.\n"
          "  optctl doctor --server=farm:7070 --token_file=ci.token\n"
          "  optctl doctor --server=a.lab:7070,b.lab:7070,c.lab:7070",
          [] { return std::unique_ptr<Command>(new Doctor); }};
}

}  // namespace optfarm::client_cli
