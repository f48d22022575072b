// Reads what the kernel says of the machine in the text files of /proc.
//
// Knows nothing of what the values are good for.

#ifndef GOSSAMER_RUNTIME_BASE_PROC_FILE_H_
#define GOSSAMER_RUNTIME_BASE_PROC_FILE_H_

#include <cstdint>
#include <string>

namespace gossamer {

// Returns the line of a setting below /proc/sys/net, such as "ipv4/tcp_rmem";
// "" if the kernel has no such setting.
std::string NetworkSetting(const std::string& name);
// Returns the last of the numbers of such a setting, which is the largest of
// "4096 131072 6291456"; 0 if it has none.
int64_t LargestOfNetworkSetting(const std::string& name);

}  // namespace gossamer

#endif  // GOSSAMER_RUNTIME_BASE_PROC_FILE_H_
