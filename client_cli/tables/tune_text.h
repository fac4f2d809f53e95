// What a tune found, for people: what to ship on each device in one line, then
// a table of the variants.

#ifndef OPTFARM_CLIENT_CLI_TABLES_TUNE_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_TUNE_TEXT_H_

#include <string>
#include <vector>

#include "client_cli/tables/table.h"
#include "optfarm/v1/tune.pb.h"
#include "optfarm/v1/tunes.pb.h"

namespace optfarm::client_cli {

// "On pi4: ship int8-fast: 0.81 ms, 3.85x (3.70x to 4.00x) float's speed,
// 0.27x size, -0.3 points on 100 held-out samples."
std::string TuneVerdict(const v1::TunedDevice& device,
                        const v1::TuneReport& report);

// The variants of a device; text, or all numbers for programs.
Table MakeTuneTable(const v1::TunedDevice& device,
                    const v1::TuneReport& report);

// All of it in 80 columns; `verbose`: with the steps of the search.
std::string TuneText(const v1::TuneReport& report, bool verbose);

// "RUNNING".
std::string TuneStateName(v1::TuneState state);

// "tune t1 FAILED: no worker offers int8".
std::string TuneStateText(const v1::Tune& tune);

// tune_id, state, model, devices, created, progress, ship.
Table MakeTunesTable(const std::vector<v1::Tune>& tunes);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_TUNE_TEXT_H_
