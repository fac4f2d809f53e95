// optctl devices: the machines that can be measured.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/command/all_devices.h"
#include "client_cli/command/farm_client.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/job_text.h"
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/results_table.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

void EngineText(std::string* out, const v1::EngineInfo& engine) {
  absl::StrAppend(out, engine.name(), " ", engine.version());
}

Table MakeDevicesTable(const std::vector<v1::Device>& devices, absl::Time now) {
  using enum Table::Align;
  Table table({{"name", "DEVICE", kLeft, false, 16},
               {"state", "STATE"},
               {"model", "MODEL", kLeft, true},
               {"cpu_model", "PROCESSOR", kLeft, true},
               {"cores", "CORES", kRight, true},
               {"memory_bytes", "MEMORY", kRight, true},
               {"os", "OS", kLeft, true},
               {"architecture", "ARCH", kLeft, true},
               {"tags", "TAGS", kLeft, true},
               {"engines", "ENGINES", kLeft, true},
               {"temperature_mc", "TEMP", kRight, true},
               {"battery_percent", "BATTERY", kRight, true},
               {"agent", "AGENT", kLeft, true},
               {"last_seen", "SEEN", kRight},
               {"note", "NOTE", kLeft, false, 33}});
  for (const v1::Device& device : devices) {
    const v1::DeviceInfo& info = device.info();
    const absl::Time seen = rpc::FromTimestamp(device.last_seen());
    table.AddRow(
        {Cell::Text(info.name()),
         Cell::Text(v1::Device::State_Name(device.state())),
         Cell::Text(info.model()),
         Cell(info.cpu_model(), ShortProcessorName(info.cpu_model())),
         Cell::Integer(info.cores()),
         info.memory_bytes() > 0
             ? Cell(info.memory_bytes(), HumanBytes(info.memory_bytes()))
             : Cell(),
         Cell::Text(info.os()), Cell::Text(info.architecture()),
         Cell::Text(absl::StrJoin(info.tags(), ",")),
         Cell::Text(absl::StrJoin(info.engines(), ",", EngineText)),
         device.health().has_temperature_mc()
             ? Cell(device.health().temperature_mc(),
                    absl::StrCat(device.health().temperature_mc() / 1000, " C"))
             : Cell(),
         device.health().has_battery_percent()
             ? Cell(int64_t{device.health().battery_percent()},
                    absl::StrCat(device.health().battery_percent(), "%",
                                 device.health().charging() ? "+" : ""))
             : Cell(),
         Cell::Text(device.agent()),
         Cell(absl::FormatTime(absl::RFC3339_sec, seen, absl::UTCTimeZone()),
              absl::StrCat(
                  HumanDuration(std::max(now - seen, absl::ZeroDuration())),
                  " ago")),
         Cell::Text(device.state() == v1::Device::BUSY
                        ? absl::StrCat("task ", device.task_id())
                    : device.alert().empty()
                        ? device.state_reason()
                        : absl::StrCat("ALERT: ", device.alert()))});
  }
  return table;
}

Table MakeStatesTable(const std::vector<v1::DeviceStateChange>& changes,
                      absl::Time now) {
  using enum Table::Align;
  Table table({{"time", "SINCE (UTC)"},
               {"state", "STATE"},
               {"seconds", "FOR", kRight},
               {"reason", "REASON", kLeft}});
  absl::Time until = now;
  for (const v1::DeviceStateChange& change : changes) {
    const absl::Time since = rpc::FromTimestamp(change.time());
    const absl::Duration lasted = std::max(until - since, absl::ZeroDuration());
    table.AddRow({TimeCell(change.time()),
                  Cell::Text(v1::Device::State_Name(change.state())),
                  Cell(absl::ToDoubleSeconds(lasted), HumanDuration(lasted)),
                  Cell::Text(change.reason())});
    until = since;
  }
  return table;
}

// "Processor: Cortex-A72" and so on: what is known, a line each.
std::string DescribeDevice(const v1::Device& device) {
  const v1::DeviceInfo& info = device.info();
  std::string text;
  const auto add = [&text](absl::string_view title, const std::string& value) {
    if (value.empty()) return;
    absl::StrAppend(&text, title, std::string(13 - title.size(), ' '),
                    PrintableLine(value), "\n");
  };
  add("Device", info.name());
  add("State", absl::StrCat(v1::Device::State_Name(device.state()),
                            device.state_reason().empty() ? "" : ": ",
                            device.state_reason()));
  add("Alert", device.alert());
  add("Task", device.task_id());
  add("Model", info.model());
  if (info.cores() > 0) {
    add("Processor",
        absl::StrCat(info.cpu_model(), info.cpu_model().empty() ? "" : ", ",
                     info.cores(), " cores"));
  }
  add("Features", absl::StrJoin(info.cpu_features(), " "));
  if (info.memory_bytes() > 0) add("Memory", HumanBytes(info.memory_bytes()));
  add("System", absl::StrCat(info.os(), info.kernel().empty() ? "" : ", ",
                             info.kernel()));
  add("Tags", absl::StrJoin(info.tags(), ", "));
  add("Engines", absl::StrJoin(info.engines(), ", ", EngineText));
  add("Agent", device.agent());
  return text;
}

class DevicesShow final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("DEVICE", "The device's name.", &name_);
    flags->Integer("limit", "Maximum number of states. Default: 20.", &limit_,
                   1, 500);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::Device device, client->GetDevice(name_));
    v1::ListDeviceHistoryRequest request;
    request.set_name(name_);
    request.set_page_size(static_cast<int>(limit_));
    OPTFARM_ASSIGN_OR_RETURN(const v1::ListDeviceHistoryResponse history,
                             client->ListDeviceHistory(request));
    const Table states =
        MakeStatesTable({history.changes().begin(), history.changes().end()},
                        context.clock->Now());
    switch (context.format) {
      case OutputFormat::kJson:
        *context.out << "{\"device\": " << ProtoToJsonLine(device)
                     << ",\n\"history\": " << states.ToJson() << "}\n";
        break;
      case OutputFormat::kCsv:
        *context.out << states.ToFormat(context.format);
        break;
      case OutputFormat::kTable:
        *context.out << DescribeDevice(device) << "\n"
                     << states.ToFormat(context.format);
    }
    return ExitCode::kOk;
  }

 private:
  std::string name_;
  int64_t limit_ = 20;
};

class Devices final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {}

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<v1::Device> devices,
                             ListAllDevices(*client));
    Print(devices, context);
    return ExitCode::kOk;
  }

 private:
  static void Print(const std::vector<v1::Device>& devices,
                    const CommandContext& context) {
    if (context.format == OutputFormat::kJson) {
      *context.out << "["
                   << absl::StrJoin(devices, ",\n",
                                    [](std::string* out, const auto& device) {
                                      out->append(ProtoToJsonLine(device));
                                    })
                   << "]\n";
      return;
    }
    if (devices.empty() && context.format == OutputFormat::kTable) {
      *context.out << "No devices. Run optfarm-agent --server=HOST:PORT "
                      "--name=NAME on a machine to add it.\n";
      return;
    }
    *context.out << MakeDevicesTable(devices, context.clock->Now())
                        .ToFormat(context.format);
  }
};

// disable, enable, retire and reserve differ in what they ask for.
class DeviceChange final : public Command {
 public:
  explicit DeviceChange(v1::ChangeDeviceRequest::Change change)
      : change_(change) {}

  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("DEVICE", "The device's name.", &name_);
    if (change_ != v1::ChangeDeviceRequest::ENABLE) {
      flags->Text("reason", "TEXT", "The reason, for others.", &reason_);
    }
    if (change_ == v1::ChangeDeviceRequest::RESERVE) {
      flags->Duration("for", "Duration, up to 30 days, such as 2h.", &term_);
      flags->Text("tag", "TAG",
                  "Jobs that were submitted with this --tag may still use the "
                  "device.",
                  &tag_);
    }
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    v1::ChangeDeviceRequest request;
    request.set_name(name_);
    request.set_change(change_);
    request.set_reason(reason_);
    request.set_tag(tag_);
    if (change_ == v1::ChangeDeviceRequest::RESERVE) {
      if (term_ <= absl::ZeroDuration()) {
        return UsageError("devices reserve needs a duration, such as --for=2h");
      }
      request.mutable_duration()->set_seconds(absl::ToInt64Seconds(term_));
    }
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::Device device,
                             client->ChangeDevice(request));
    *context.out << MakeDevicesTable({device}, context.clock->Now())
                        .ToFormat(context.format);
    return ExitCode::kOk;
  }

 private:
  const v1::ChangeDeviceRequest::Change change_;
  std::string name_, reason_, tag_;
  absl::Duration term_;
};

class DevicesDelete final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("DEVICE", "The device's name.", &name_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<FarmClient> client,
                             context.connect());
    OPTFARM_ASSIGN_OR_RETURN(const v1::Device device,
                             client->DeleteDevice(name_));
    if (context.format != OutputFormat::kTable) {
      *context.out << MakeDevicesTable({device}, context.clock->Now())
                          .ToFormat(context.format);
      return ExitCode::kOk;
    }
    *context.out << "The device " << device.info().name()
                 << " is deleted; its results stay.\n";
    return ExitCode::kOk;
  }

 private:
  std::string name_;
};

}  // namespace

CommandInfo DevicesDisableCommand() {
  return {"devices disable", "Take a device out of service.",
          "Its current task continues. The device stays out of service, "
          "across restarts, until optctl devices enable.",
          [] {
            return std::unique_ptr<Command>(
                new DeviceChange(v1::ChangeDeviceRequest::DISABLE));
          }};
}

CommandInfo DevicesEnableCommand() {
  return {"devices enable",
          "Put a device back into service; ends a quarantine or a "
          "reservation.",
          "", [] {
            return std::unique_ptr<Command>(
                new DeviceChange(v1::ChangeDeviceRequest::ENABLE));
          }};
}

CommandInfo DevicesReserveCommand() {
  return {"devices reserve",
          "Reserve a device for certain jobs, or for yourself.",
          "Until the time is over, the device only takes jobs that were "
          "submitted with the tag; without --tag it takes none. optctl "
          "devices enable ends the reservation.",
          [] {
            return std::unique_ptr<Command>(
                new DeviceChange(v1::ChangeDeviceRequest::RESERVE));
          }};
}

CommandInfo DevicesRetireCommand() {
  return {"devices retire", "Stop alerts for a device that is gone.",
          "The device returns when its agent reports it again.", [] {
            return std::unique_ptr<Command>(
                new DeviceChange(v1::ChangeDeviceRequest::RETIRE));
          }};
}

CommandInfo DevicesDeleteCommand() {
  return {"devices delete", "Delete the name of a device that is gone.",
          "Also deletes the states that the device was in. Its results stay. "
          "Requires that its agent has stopped reporting it, or that it is "
          "retired, and that no live job wants it. An agent that reports the "
          "name again brings a new device.",
          [] { return std::unique_ptr<Command>(new DevicesDelete); }};
}

CommandInfo DevicesShowCommand() {
  return {"devices show",
          "Show one device and the states that it was in, newest first.",
          "The server keeps the newest 500 states of each device, each with "
          "its reason.",
          [] { return std::unique_ptr<Command>(new DevicesShow); }};
}

CommandInfo DevicesCommand() {
  return {"devices", "List the devices and their states.",
          "-o json prints everything the server knows, including CPU "
          "features.",
          [] { return std::unique_ptr<Command>(new Devices); }};
}

}  // namespace optfarm::client_cli
