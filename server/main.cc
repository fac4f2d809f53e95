// optfarm-server: reads flags, makes a Server, runs until SIGTERM or SIGINT.

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/deadlock_checks.h"
#include "base/files.h"
#include "base/log.h"
#include "base/service_manager.h"
#include "base/status_macros.h"
#include "rpc/channel.h"
#include "server/delivery/collector.h"
#include "server/server.h"
#include "server/upkeep/blob_engine.h"
#include "server/upkeep/data_dir.h"
#include "server/upkeep/migration.h"
#include "server/upkeep/server_backup.h"

namespace optfarm::server {
namespace {

struct Flags {
  ServerOptions options;
  std::string token_file;
  std::string webhook_secret_file;
  std::string otlp_headers_file;
  std::string project_limits_file;
  std::string restore;
  MigrationOptions migration;
  double lease_seconds = 30;
  double provision_minutes = 45;
  int64_t results_memory_mb = storage::kResultsBytes >> 20;
  double keep_samples_days = 0;
  double keep_logs_days = 0;
  double keep_jobs_days = 0;
  double keep_audit_days = 365;
};

// UNITS: seconds a lease may be set to.
constexpr double kShortestLease = 1;
constexpr double kLongestLease = 3600;
// UNITS: minutes.
constexpr double kShortestProvision = 1;
constexpr double kLongestProvision = 1440;
constexpr size_t kMaxLimitsBytes = size_t{1} << 20;
constexpr size_t kMaxHeadersBytes = size_t{64} << 10;

// CLI11's own say of a wrong value that it is not in a range whose end takes
// 300 digits.
std::string CheckNumber(const std::string& text, bool may_be_zero) {
  double value = 0;
  if (absl::SimpleAtod(text, &value) && std::isfinite(value) &&
      (value > 0 || (may_be_zero && value == 0))) {
    return "";
  }
  return absl::StrCat("'", text, "' is not a number ",
                      may_be_zero ? "from 0 up" : "above 0");
}

// Connections need descriptors, and what is given at first is for programs of
// old that cannot have many.
void RaiseFileLimit() {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) {
    LogWarning("this process may open ", files.rlim_cur, " files");
  }
}

CLI::Validator Positive() {
  return CLI::Validator(
      [](const std::string& text) { return CheckNumber(text, false); },
      "POSITIVE");
}

CLI::Validator NonNegative() {
  return CLI::Validator(
      [](const std::string& text) { return CheckNumber(text, true); },
      "NONNEGATIVE");
}

void Declare(CLI::App& app, Flags& flags) {
  ServerOptions& options = flags.options;
  app.set_version_flag("--version", OPTFARM_VERSION);
  app.add_option("--data_dir", options.data_dir,
                 "Folder for all data of the server; created if missing")
      ->required();
  app.add_option("--restore", flags.restore,
                 "NAME.manifest of a backup: restores it into an empty "
                 "--data_dir, says which files are missing, and exits");
  app.add_option("--database", options.database,
                 "postgresql://USER@HOST/DATABASE, or sqlite:PATH; default: "
                 "SQLite in the data folder. A password belongs into a file: "
                 "?passfile=FILE, or PGPASSFILE")
      ->envname("OPTFARM_DATABASE");
  app.add_option("--grpc", options.grpc_address,
                 "HOST:PORT to listen on; port 0 takes a free one")
      ->capture_default_str();
  app.add_option("--advertise", options.advertise,
                 "HOST:PORT where other servers of this database reach --grpc: "
                 "one leads, and the others send calls to it and take its "
                 "place (default: there are no others)");
  app.add_option("--http", options.http_address,
                 "HOST:PORT of the HTTP server (REST); default: none");
  app.add_option(
         "--grpc_connections", options.connections.max_connections,
         "Maximum number of concurrent gRPC connections; each takes two "
         "of the process's file descriptors")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--grpc_peer_connections", options.connections.max_per_peer,
                 "Maximum number of concurrent gRPC connections of one address "
                 "(behind a proxy: as --grpc_connections)")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--http_peer_connections",
                 options.http_limits.max_peer_connections,
                 "Maximum number of concurrent HTTP connections of one address "
                 "(behind a proxy: as --http_connections)");
  app.add_option("--http_connections", options.http_limits.max_connections,
                 "Maximum number of concurrent HTTP connections")
      ->check(CLI::Range(1, 20000))
      ->capture_default_str();
  app.add_option("--token_file", flags.token_file,
                 "File whose first line is the operator's bearer token, which "
                 "allows everything; once set, every call needs a token. "
                 "Required unless listening on loopback");
  app.add_option("--tls_cert", options.tls.certificate,
                 "PEM file of the server's certificate with its chain; "
                 "enables TLS for gRPC and HTTP");
  app.add_option("--tls_key", options.tls.key, "PEM file of its key");
  app.add_option("--tls_client_ca", options.tls.client_ca,
                 "PEM file of the CA that signs client certificates; makes "
                 "them mandatory for workers and agents");
  app.add_option("--servers_ca", options.servers_ca,
                 "PEM file of the CA that signed the servers' certificates, "
                 "for TLS between servers with --advertise");
  app.add_option("--webhook_allow", options.webhooks.allowed,
                 "HOST or HOST:PORT that jobs may notify when they end; may "
                 "be given several times (default: none)");
  app.add_option("--webhook_secret_file", flags.webhook_secret_file,
                 "File whose first line is the key that signs webhooks");
  app.add_option("--otlp_endpoint", options.traces.endpoint,
                 "http or https URL of an OpenTelemetry collector (OTLP/HTTP) "
                 "that traces of ended jobs are sent to; default: none")
      ->envname("OTEL_EXPORTER_OTLP_ENDPOINT");
  app.add_option("--otlp_headers_file", flags.otlp_headers_file,
                 "File with headers for it, a line NAME: VALUE each, such as "
                 "an API key");
  app.add_option("--max_blob_bytes", options.max_blob_bytes,
                 "Size limit of an uploaded file, in bytes")
      ->check(Positive())
      ->capture_default_str();
  app.add_option("--max_store_bytes", options.max_store_bytes,
                 "Size limit of all files together, in bytes; unused files "
                 "are evicted when it is reached (default: no limit, no "
                 "eviction)")
      ->check(Positive());
  app.add_option("--reserved_free_bytes", options.reserved_free_bytes,
                 "Disk space that uploads leave free, in bytes")
      ->check(NonNegative())
      ->capture_default_str();
  app.add_option("--results_memory_mb", flags.results_memory_mb,
                 "Memory for the copy of the results, in megabytes, 70 for a "
                 "million; what does not fit is read from the database; 0: no "
                 "copy")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--max_live_jobs", options.scheduling.max_live_jobs,
                 "Maximum number of waiting and running jobs")
      ->check(Positive())
      ->capture_default_str();
  app.add_option("--lease_seconds", flags.lease_seconds,
                 "Seconds that a worker or agent that does not call keeps its "
                 "task")
      ->check(CLI::Range(kShortestLease, kLongestLease))
      ->capture_default_str();
  app.add_option("--provision_minutes", flags.provision_minutes,
                 "Minutes that an attempt may fetch files and wait for a "
                 "cool, idle device before it starts")
      ->check(CLI::Range(kShortestProvision, kLongestProvision))
      ->capture_default_str();
}

void DeclareBlobs(CLI::App& app, BlobEngineOptions& blobs) {
  app.add_option("--blobs", blobs.blobs,
                 "Where files are kept: file:FOLDER or s3://BUCKET/PREFIX "
                 "(default: a folder in --data_dir)");
  app.add_option("--s3_endpoint", blobs.s3_endpoint,
                 "URL of the object store (default: Amazon's of the region)");
  app.add_option("--s3_region", blobs.s3_region,
                 "Region of the bucket (default: us-east-1)");
  app.add_flag("--s3_path_style", blobs.s3_path_style,
               "Address the bucket as ENDPOINT/BUCKET rather than as a host of "
               "its own");
  app.add_option("--s3_download_endpoint", blobs.s3_download_endpoint,
                 "URL under which workers and agents reach the object store "
                 "to fetch large files from it; none: all pass through the "
                 "server (default: --s3_endpoint)");
  app.add_option("--s3_credentials_file", blobs.s3_credentials_file,
                 "File with aws_access_key_id and aws_secret_access_key "
                 "(default: the variables AWS_ACCESS_KEY_ID and "
                 "AWS_SECRET_ACCESS_KEY)");
}

void DeclareProjectLimits(CLI::App& app, Flags& flags) {
  ProjectLimits& limits = flags.options.project_limits;
  app.add_option("--project_max_bytes", limits.max_bytes,
                 "Bytes that one project may upload; 0: no limit")
      ->check(NonNegative())
      ->capture_default_str();
  app.add_option("--project_max_live_jobs", limits.max_live_jobs,
                 "Maximum number of waiting and running jobs of one project; "
                 "0: no limit")
      ->check(NonNegative())
      ->capture_default_str();
  app.add_option("--project_jobs_per_day", limits.max_jobs_a_day,
                 "Jobs that one project may submit within 24 hours; 0: no "
                 "limit")
      ->check(NonNegative())
      ->capture_default_str();
  app.add_option("--project_calls_per_second", limits.calls_per_second,
                 "Sustained calls per second of one project; 0: no limit")
      ->check(NonNegative())
      ->capture_default_str();
  app.add_option("--project_call_burst", limits.call_burst,
                 "Burst of calls of one project after a pause")
      ->check(Positive())
      ->capture_default_str();
  app.add_option("--project_limits", flags.project_limits_file,
                 "File with limits for individual projects, read again on "
                 "SIGHUP (default: the limits above for all)");
}

void DeclareRetention(CLI::App& app, Flags& flags) {
  const auto days = [&app](const char* name, double* value, const char* help) {
    app.add_option(name, *value, help)
        ->check(NonNegative())
        ->capture_default_str();
  };
  days("--keep_samples_days", &flags.keep_samples_days,
       "Days to keep the time of each run and the profiles of a result; 0: "
       "forever. Its statistics stay");
  days("--keep_logs_days", &flags.keep_logs_days,
       "Days to keep the logs of an ended job; 0: forever");
  days("--keep_jobs_days", &flags.keep_jobs_days,
       "Days to keep an ended job with all its results; 0: forever");
  days("--keep_audit_days", &flags.keep_audit_days,
       "Days to keep the audit log, at least one; 0: forever");
}

void DeclareMigration(CLI::App& app, MigrationOptions& migration) {
  app.add_option("--migrate_from", migration.from,
                 "Copies all records of this database (sqlite:PATH or "
                 "postgresql://...), while no server uses it, to that of "
                 "--migrate_to, compares them, and exits; called again, it "
                 "goes on. See optctl migrate");
  app.add_option("--migrate_to", migration.to,
                 "sqlite:PATH or postgresql://..., a new database");
  app.add_option("--migrate_blobs_from", migration.from_blobs.blobs,
                 "With --migrate_from: where the files are, as --blobs");
  app.add_option("--migrate_blobs_to", migration.to_blobs.blobs,
                 "With --migrate_from: where the files are copied to, as "
                 "--blobs (default: they stay where they are)");
}

absl::Duration Days(double days) {
  return days > 0 ? days * absl::Hours(24) : absl::InfiniteDuration();
}

absl::StatusOr<LimitsByProject> ReadProjectLimits(const std::string& path,
                                                  const ProjectLimits& of_all) {
  if (path.empty()) return LimitsByProject();
  absl::StatusOr<std::string> text = ReadFile(path, kMaxLimitsBytes);
  if (text.ok()) {
    absl::StatusOr<LimitsByProject> limits = ParseProjectLimits(*text, of_all);
    if (limits.ok()) return limits;
    text = limits.status();
  }
  return Annotate(text.status(), absl::StrCat("reading '", path, "'"));
}

// ERRORS: name the file and the line, and no value.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
ReadOtlpHeaders(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(path, kMaxHeadersBytes));
  auto headers = ParseHeaderLines(text);
  if (headers.ok() && headers->empty()) {
    headers = absl::InvalidArgumentError("it has no header; give NAME: VALUE");
  }
  if (headers.ok()) return headers;
  return Annotate(headers.status(),
                  absl::StrCat("--otlp_headers_file: reading '", path, "'"));
}

absl::Status Restore(const ServerOptions& options,
                     const std::string& manifest) {
  if (!options.database.empty()) {
    return absl::InvalidArgumentError(
        "--restore restores SQLite into --data_dir; leave out --database");
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto data_dir,
                           DataDir::Open(options.data_dir));
  OPTFARM_ASSIGN_OR_RETURN(
      const auto blobs,
      OpenBlobs(options.blobs,
                {options.max_blob_bytes, options.max_store_bytes,
                 options.reserved_free_bytes},
                *data_dir));
  OPTFARM_ASSIGN_OR_RETURN(const RestoredBackup restored,
                           RestoreServerBackup(manifest, *data_dir, *blobs));
  LogInfo(
      "restored the backup of ",
      absl::FormatTime(absl::RFC3339_sec, restored.time, absl::UTCTimeZone()),
      "; of its ", restored.blobs, " files ", restored.missing_blobs,
      " are missing");
  return absl::OkStatus();
}

absl::Status RunMigration(const ServerOptions& options,
                          MigrationOptions migration) {
  if (migration.from.empty() || migration.to.empty()) {
    return absl::InvalidArgumentError(
        "a migration needs both --migrate_from and --migrate_to");
  }
  // What is said of a bucket is said of the side that is one.
  for (BlobEngineOptions* side : {&migration.from_blobs, &migration.to_blobs}) {
    if (!absl::StartsWith(side->blobs, "s3:")) continue;
    std::string blobs = std::move(side->blobs);
    *side = options.blobs;
    side->blobs = std::move(blobs);
  }
  migration.data_dir = options.data_dir;
  migration.limits = {options.max_blob_bytes, options.max_store_bytes,
                      options.reserved_free_bytes};
  OPTFARM_ASSIGN_OR_RETURN(const MigrationReport report,
                           Migrate(migration, options.clock->Now()));
  std::cout << ToText(report);
  LogInfo("the migration is complete");
  return absl::OkStatus();
}

// Until a signal says to stop, which it returns.
int Serve(Server& server, const sigset_t& signals, const std::string& limits,
          const ProjectLimits& of_all) {
  while (true) {
    int signal_number = 0;
    sigwait(&signals, &signal_number);
    if (signal_number != SIGHUP) return signal_number;
    if (const absl::Status status = server.ReloadTls(); !status.ok()) {
      LogError("keeping the previous TLS files: ", status.message());
    }
    absl::StatusOr<LimitsByProject> read = ReadProjectLimits(limits, of_all);
    if (read.ok()) {
      server.SetProjectLimits(*std::move(read));
    } else {
      LogError("keeping the previous project limits: ",
               read.status().message());
    }
  }
}

absl::Status Run(Flags flags) {
  // Signals are taken by sigwait below and by nothing else, in no thread.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A broken connection or a file size limit is an error of one call.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  umask(077);

  if (!flags.migration.from.empty() || !flags.migration.to.empty()) {
    return RunMigration(flags.options, std::move(flags.migration));
  }
  if (!flags.restore.empty()) return Restore(flags.options, flags.restore);
  if (!flags.token_file.empty()) {
    absl::StatusOr<std::string> token = rpc::ReadToken(flags.token_file);
    if (!token.ok()) return token.status();
    flags.options.token = *std::move(token);
  }
  if (!flags.webhook_secret_file.empty()) {
    absl::StatusOr<std::string> secret =
        rpc::ReadToken(flags.webhook_secret_file);
    if (!secret.ok()) return secret.status();
    flags.options.webhooks.secret = *std::move(secret);
  }
  if (!flags.otlp_headers_file.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(flags.options.traces.headers,
                             ReadOtlpHeaders(flags.otlp_headers_file));
  }
  flags.options.scheduling.lease = absl::Seconds(flags.lease_seconds);
  flags.options.scheduling.provision_limit =
      absl::Minutes(flags.provision_minutes);
  flags.options.results_bytes = flags.results_memory_mb << 20;
  flags.options.retention = {
      Days(flags.keep_samples_days), Days(flags.keep_logs_days),
      Days(flags.keep_jobs_days), Days(flags.keep_audit_days)};
  const ProjectLimits of_all = flags.options.project_limits;
  auto limits = ReadProjectLimits(flags.project_limits_file, of_all);
  if (!limits.ok()) return limits.status();
  flags.options.limits_by_project = *std::move(limits);
  const std::string data_dir = flags.options.data_dir;
  flags.options.on_database_lost = [](const std::string& why) {
    LogError("stopping: ", why);
    kill(getpid(), SIGTERM);
  };
  // A large store takes minutes to check, and longer where its schema is old.
  auto starting = std::make_unique<ServiceStart>();
  auto server = Server::Start(std::move(flags.options));
  starting = nullptr;
  if (!server.ok()) return server.status();
  const std::string http = (*server)->http_address();
  LogInfo("optfarm-server ready grpc=", (*server)->address(),
          http.empty() ? "" : " http=", http, " data_dir=", data_dir);
  TellServiceReady();
  const int signal_number =
      Serve(**server, signals, flags.project_limits_file, of_all);
  LogInfo("stopping on signal ", signal_number);
  TellServiceStopping();
  // A second signal does not wait.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  (*server)->Shutdown();
  LogInfo("stopped");
  return absl::OkStatus();
}

}  // namespace
}  // namespace optfarm::server

int main(int argc, char** argv) {
  optfarm::TurnOffDeadlockChecks();
  // An address that is in use is told in one line of our own, not in gRPC's.
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
  optfarm::SetUpLog("server", optfarm::LogLevel::kInfo);
  CLI::App app(
      "Optfarm's server: accepts jobs, hands out tasks, stores results");
  optfarm::server::Flags flags;
  optfarm::server::Declare(app, flags);
  optfarm::server::DeclareBlobs(app, flags.options.blobs);
  optfarm::server::DeclareProjectLimits(app, flags);
  optfarm::server::DeclareRetention(app, flags);
  optfarm::server::DeclareMigration(app, flags.migration);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  optfarm::server::RaiseFileLimit();
  const absl::Status status = optfarm::server::Run(std::move(flags));
  if (status.ok()) return 0;
  optfarm::LogError(status.message());
  return 1;
}
