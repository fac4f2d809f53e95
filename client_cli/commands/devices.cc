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
#include "client_cli/tables/proto_json.h"
#include "client_cli/tables/results_table.h"
#include "rpc/proto_time.h"

namespace optfarm::client_cli {
namespace {

Table MakeDevicesTable(const std::vector<v1::Device>& devices, absl::Time now) {
  Table table({{"name", "DEVICE"},
               {"state", "STATE"},
               {"model", "MODEL"},
               {"cpu_model", "PROCESSOR"},
               {"cores", "CORES", Table::Align::kRight},
               {"memory_bytes", "MEMORY", Table::Align::kRight},
               {"os", "OS"},
               {"architecture", "ARCH"},
               {"tags", "TAGS"},
               {"temperature_mc", "TEMP", Table::Align::kRight},
               {"battery_percent", "BATTERY", Table::Align::kRight},
               {"agent", "AGENT"},
               {"last_seen", "SEEN", Table::Align::kRight},
               {"note", "NOTE"}});
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

CommandInfo DevicesCommand() {
  return {"devices", "List the devices and their states.",
          "-o json prints everything the server knows, including CPU "
          "features.",
          [] { return std::unique_ptr<Command>(new Devices); }};
}

}  // namespace optfarm::client_cli
