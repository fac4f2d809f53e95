// SQLite on a simulated disk: our VFS takes the place of the operating
// system's, for every database that is opened from then on.

#ifndef OPTFARM_TESTS_SIMULATION_SIM_SQLITE_H_
#define OPTFARM_TESTS_SIMULATION_SIM_SQLITE_H_

#include <cstdint>

#include "tests/simulation/sim_disk.h"

namespace optfarm::simulation {

// Makes SQLite use `disk`, and draw the same random numbers for the same seed.
// OWNERSHIP: the disk outlives what is opened on it.
// REQUIRES: no database is open.
void UseForSqlite(SimDisk* disk, uint64_t seed);

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_SIM_SQLITE_H_
