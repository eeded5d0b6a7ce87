/* shut_down_fs FOLDER: the file system that holds it fails every access from now on, as after the loss of its disk. What
 * was written before is on the disk. (ext4's EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_DEFAULT, fs/ext4/ioctl.c.) */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>

int main(int argc, char **argv) {
    uint32_t how = 0;
    int folder = open(argc > 1 ? argv[1] : ".", O_RDONLY);
    if (folder < 0 || ioctl(folder, _IOR('X', 125, uint32_t), &how)) {
        perror("shut_down_fs");
        return 1;
    }
    return 0;
}
