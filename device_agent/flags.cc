#include "device_agent/flags.h"

#include <CLI/CLI.hpp>

namespace optfarm::device_agent {

namespace {

void DeclareConditions(CLI::App& app, Flags& flags) {
  app.add_option("--max_celsius", flags.quiet.max_celsius,
                 "Temperature limit in degrees Celsius: no benchmark starts "
                 "while the device is hotter; 0: no limit")
      ->check(CLI::Range(0.0, 200.0))
      ->capture_default_str();
  app.add_option("--max_load", flags.quiet.max_load,
                 "No benchmark starts while the load average is higher; 0: no "
                 "limit")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  app.add_option("--min_battery", flags.quiet.min_battery_percent,
                 "No benchmark starts while the battery is lower, in percent; "
                 "0: no limit")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_option("--cool_down_seconds", flags.cool_down_seconds,
                 "How long a benchmark waits for the three limits above "
                 "before it runs anyway and is marked as noisy")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--cpus", flags.cpus,
                 "CPUs to run on unless the job says otherwise: big, or "
                 "numbers such as 4,5,6,7; default: the system's choice");
  app.add_option("--launcher", flags.launcher,
                 "Program that starts each benchmark, for example an emulator "
                 "if the kernel cannot execute this program itself");
  app.add_option("--engine", flags.engines,
                 "Runtime to measure with, beside Optfarm's, in jobs that ask "
                 "for it, loaded from its shared library: onnxruntime:FILE or "
                 "tflite:FILE. Repeatable; not with --driver=adb");
  app.add_flag("--no_sandbox", flags.no_sandbox,
               "Disable the sandbox: benchmarks may use the network and "
               "access all files of this program's user");
  app.add_option("--tags", flags.tags,
                 "Tags that select the device, for example lab-2,pixel")
      ->delimiter(',');
}

void DeclareAdb(CLI::App& app, Flags& flags) {
  app.add_option("--driver", flags.driver,
                 "What to benchmark on: this machine (local), or the phones "
                 "that adb knows (adb)")
      ->check(CLI::IsMember({"local", "adb"}))
      ->capture_default_str();
  app.add_option("--adb", flags.adb,
                 "With --driver=adb: path of the adb program")
      ->capture_default_str();
  app.add_option("--phone_programs", flags.phone_programs,
                 "With --driver=adb: folder with optfarm-agent-ABI for each "
                 "ABI of the phones, such as optfarm-agent-arm64-v8a");
  app.add_flag("--fixed_performance", flags.fixed_performance,
               "With --driver=adb: ask Android for a fixed clock during "
               "benchmarks");
  app.add_option("--serial", flags.serial)->group("");
}

}  // namespace

std::optional<Flags> ParseFlags(int argc, char** argv, int* exit_code) {
  Flags flags;
  CLI::App app(
      "Runs benchmarks of an Optfarm server on this machine, one at a time, "
      "each in a child process with limits.",
      "optfarm-agent");
  rpc::DeclareParticipantFlags(&app, &flags.shared);
  app.add_option("--threads", flags.threads,
                 "Thread counts to benchmark unless the job says otherwise, "
                 "for example 1,4; default: 1 and 4, or 1 and all")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  DeclareConditions(app, flags);
  DeclareAdb(app, flags);
  if (!rpc::ParseParticipantFlags(&app, argc, argv, flags.shared, exit_code)) {
    return std::nullopt;
  }
  if (flags.shared.name.empty()) flags.shared.name = rpc::HostName();
  return flags;
}

rpc::ChildSandbox SandboxFor(const Flags& flags) {
  return flags.driver == "local" && !flags.no_sandbox
             ? rpc::ChildSandbox::kFull
             : rpc::ChildSandbox::kNone;
}

}  // namespace optfarm::device_agent
