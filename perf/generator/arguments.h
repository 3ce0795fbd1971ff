/* What a port is told to be: `name=value` behind the device's name. Part of generator.c. */

#define BOTH 2

static int
refuse(const char *key, const char *value, const char *wanted)
{
	LOG(ERR, "%s=%s: write %s\n", key, value, wanted);
	return -EINVAL;
}

static int
read_number(const char *key, const char *value, uint32_t *number, uint32_t lowest, uint32_t highest)
{
	char wanted[64], *end;
	unsigned long read = strtoul(value, &end, 10);

	if (*value != '\0' && *end == '\0' && read >= lowest && read <= highest) {
		*number = read;
		return 0;
	}
	snprintf(wanted, sizeof(wanted), "a whole number from %u to %u", lowest, highest);
	return refuse(key, value, wanted);
}

static int
read_power(const char *key, const char *value, uint32_t *number, uint32_t lowest, uint32_t highest)
{
	if (read_number(key, value, number, lowest, highest) < 0)
		return -EINVAL;
	return rte_is_power_of_2(*number) ? 0 : refuse(key, value, "a power of two");
}

/* The place of `value` among `words`, which are separated by `|`. */
static int
read_word(const char *key, const char *value, const char *words, uint32_t *place)
{
	size_t len = strlen(value);

	*place = 0;
	for (const char *word = words; ; word = strchr(word, '|') + 1, (*place)++) {
		if (strncmp(word, value, len) == 0 && (word[len] == '|' || word[len] == '\0'))
			return 0;
		if (strchr(word, '|') == NULL)
			return refuse(key, value, words);
	}
}

/* One argument, for all of them: rte_kvargs_process calls it. */
static int
argument_read(const char *key, const char *value, void *opaque)
{
	struct port *port = opaque;
	uint32_t number = 0;
	int status;

	if (value == NULL)
		return refuse(key, "", "a value");
	if (strcmp(key, "index") == 0) {
		status = read_number(key, value, &number, 0, GEN_MAX_PORTS - 1);
		port->index = number;
	} else if (strcmp(key, "ports") == 0) {
		status = read_number(key, value, &port->ports, 2, GEN_MAX_PORTS);
	} else if (strcmp(key, "flows") == 0) {
		status = read_power(key, value, &port->stations, 1, 65536);
	} else if (strcmp(key, "size") == 0) {
		port->size = 0; /* IMIX */
		status = strcmp(value, "imix") == 0 ? 0 : read_number(key, value, &port->size, FRAME_HEAD, 1514);
	} else if (strcmp(key, "classes") == 0) {
		status = read_word(key, value, "lossy|lossless|both", &port->classes);
	} else if (strcmp(key, "pattern") == 0) {
		status = read_word(key, value, "pairs|ring|incast", &number);
		port->pattern = number;
	} else if (strcmp(key, "posted") == 0) {
		status = read_power(key, value, &port->posted, 64, 32768);
	} else if (strcmp(key, "load") == 0) {
		status = read_number(key, value, &port->load, 0, 32768);
		port->is_emptied = true;
	} else if (strcmp(key, "timed") == 0) {
		status = read_number(key, value, &number, 0, 1);
		port->is_timed = number;
	} else if (strcmp(key, "pfc") == 0) {
		status = read_number(key, value, &number, 0, 1);
		port->obeys = number;
	} else if (strcmp(key, "routed") == 0) {
		status = read_number(key, value, &number, 0, 1);
		port->routed = number;
	} else if (strcmp(key, "speed") == 0) {
		status = read_number(key, value, &port->speed_mb, 10, 800000);
	} else if (strcmp(key, "drain") == 0) {
		status = read_number(key, value, &port->drain_mb, 0, 800000);
	} else {
		status = strlen(value) < sizeof(port->stats) ? 0 : refuse(key, value, "a shorter path");
		snprintf(port->stats, sizeof(port->stats), "%s", value);
	}
	return status;
}

static int
arguments_read(struct port *port, const char *text)
{
	static const char *const keys[] = { "index", "ports", "flows", "size", "classes", "pattern", "posted", "load", "timed", "pfc",
		"routed", "speed", "drain", "stats", NULL };
	struct rte_kvargs *pairs;
	int status;

	port->ports = 2;
	port->stations = 1024;
	port->size = 64;
	port->classes = BOTH;
	port->posted = 1024;
	port->speed_mb = 400000;
	pairs = rte_kvargs_parse(text == NULL ? "" : text, keys);
	if (pairs == NULL) {
		LOG(ERR, "unknown argument in `%s`; perf/README.md lists them\n", text);
		return -EINVAL;
	}
	status = rte_kvargs_process(pairs, NULL, argument_read, port);
	rte_kvargs_free(pairs);
	if (status == 0 && port->index >= port->ports) {
		LOG(ERR, "index=%u: there are ports=%u, counted from 0\n", port->index, port->ports);
		return -EINVAL;
	}
	if (status == 0 && port->pattern == PAIRS && port->ports % 2 != 0) {
		LOG(ERR, "ports=%u: pairs need an even number\n", port->ports);
		return -EINVAL;
	}
	return status;
}

/* The port's slot in the shared file, which the harness has made. */
static int
counts_map(struct port *port)
{
	struct stat file;
	void *page;
	int fd;

	if (port->stats[0] == '\0')
		return 0;
	fd = open(port->stats, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &file) < 0 || file.st_size < (off_t)(GEN_MAX_PORTS * sizeof(struct gen_counts))) {
		LOG(ERR, "stats=%s: must be a file of %zu bytes that can be written\n", port->stats,
			GEN_MAX_PORTS * sizeof(struct gen_counts));
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED) {
		LOG(ERR, "stats=%s: cannot be mapped: %s\n", port->stats, strerror(errno));
		return -errno;
	}
	port->counts = (struct gen_counts *)page + port->index;
	memset(port->counts, 0, sizeof(*port->counts));
	port->counts->hz = rte_get_tsc_hz();
	port->counts->magic = GEN_MAGIC;
	return 0;
}

/* Who sends to whom. In an incast all send to the last port, which says where its own stations are, each twice, and then
 * again and again with one frame in some hundreds: a program may not have been ready, and would flood for ever. */
static void
pattern_init(struct port *port)
{
	port->left = INT64_MAX;
	if (port->pattern == INCAST) {
		port->to = port->ports - 1;
		if (port->index == port->to) {
			port->to = 0;
			port->left = 2 * port->stations;
			port->trickle = 32;
		}
	} else {
		port->to = port->pattern == PAIRS ? port->index ^ 1 : (port->index + 1) % port->ports;
	}
}

/* Templates of all lengths and classes, and the order of lengths and stations. */
static void
lanes_init(struct port *port)
{
	static const uint16_t imix[SIZES] = { 64, 594, 1514 };
	static const uint8_t shares[12] = { 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2 };
	uint64_t random = 0x9e3779b97f4a7c15ULL;

	pattern_init(port);
	port->lane_count = port->classes == BOTH ? 2 : 1;
	for (unsigned int i = 0; i < port->lane_count; i++) {
		bool lossless = port->classes == BOTH ? i == 1 : port->classes == 1;

		port->lanes[i].class = lossless ? LOSSLESS_CLASS : 0;
		for (unsigned int size = 0; size < SIZES; size++)
			template_init(&port->lanes[i].templates[size], port->size == 0 ? imix[size] : port->size,
				lossless ? TOS_LOSSLESS : TOS_LOSSY, port->index, port->to, port->routed);
	}
	for (unsigned int i = 0; i < MIX; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		port->mix[i] = shares[(random >> 33) % RTE_DIM(shares)];
	}
	port->random = random ^ port->index;
	port->hash_seed = (uint32_t)port->index << 20 ^ (uint32_t)port->to << 26;
	port->order.mask = port->stations - 1;
	port->order.station = port->index * 7919 & port->order.mask;
	port->order.half_bits = (rte_log2_u32(port->stations) + 1) / 2;
}
