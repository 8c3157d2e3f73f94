package main

import (
	"github.com/IBM/sarama"

	"kproto/tests/clients/drivers/telling"
)

func createTopic(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		topic := &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1}
		if err := admin.CreateTopic(r.Name, topic, false); err != nil {
			return err
		}
		var partitions int32
		err := telling.Until("the topic", func() (bool, error) {
			topics, err := admin.ListTopics()
			partitions = topics[r.Name].NumPartitions
			return partitions > 0, err
		})
		if err != nil {
			return err
		}
		r.Tell("partitions", partitions)
		return tellCode(r, "again", admin.CreateTopic(r.Name, topic, false))
	})
}

func listGroups(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 1); err != nil {
			return err
		}
		return tellListed(admin, r)
	})
}

func tellListed(admin sarama.ClusterAdmin, r *run) error {
	groups, err := admin.ListConsumerGroups()
	_, listed := groups[r.Name]
	r.Tell("listed", listed)
	return err
}

func describeGroup(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		err := whileMember(r, 2, func() error {
			group, err := awaitMembers(admin, r, 1)
			if err != nil {
				return err
			}
			r.Tell("state", group.State)
			r.Tell("members", len(group.Members))
			for _, member := range group.Members {
				assignment, err := member.GetMemberAssignment()
				if err != nil {
					return err
				}
				r.Tell("assigned", telling.Sorted(assignment.Topics[r.Name]))
			}
			return nil
		})
		if err != nil {
			return err
		}
		group, err := awaitMembers(admin, r, 0)
		if err == nil {
			r.Tell("then", group.State)
		}
		return err
	})
}

// awaitMembers describes the group until it has this many members.
func awaitMembers(admin sarama.ClusterAdmin, r *run, count int) (*sarama.GroupDescription, error) {
	var group *sarama.GroupDescription
	err := telling.Until("the group's members", func() (bool, error) {
		groups, err := admin.DescribeConsumerGroups([]string{r.Name})
		if err != nil {
			return false, err
		}
		group = groups[0]
		return len(group.Members) == count, nil
	})
	return group, err
}

// whileMember does the work while a member of the group has this many partitions.
func whileMember(r *run, partitions int, work func() error) error {
	member, err := newMember(r, nil)
	if err != nil {
		return err
	}
	if _, err := member.Wait(partitions); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	return member.Close()
}

func deleteGroup(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 1); err != nil {
			return err
		}
		tellDeletion := func(fact string) error { return tellCode(r, fact, admin.DeleteConsumerGroup(r.Name)) }
		if err := whileMember(r, 1, func() error { return tellDeletion("busy") }); err != nil {
			return err
		}
		if err := tellDeletion("deleted"); err != nil {
			return err
		}
		if err := tellListed(admin, r); err != nil {
			return err
		}
		return tellDeletion("again")
	})
}

func listGroupOffsets(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 3, 7); err != nil {
			return err
		}
		return tellOffsets(admin, r, "offsets")
	})
}

func tellOffsets(admin sarama.ClusterAdmin, r *run, fact string) error {
	found, err := notes(admin, r, 2)
	offsets := map[int32]int64{}
	for partition, note := range found {
		offsets[partition] = note.Offset
	}
	r.Tell(fact, offsets)
	return err
}

func deleteOffsets(r *run) error {
	return withAdmin(r, func(admin sarama.ClusterAdmin) error {
		if err := commit(r, 3, 7); err != nil {
			return err
		}
		tellDeletion := func(fact string) error {
			return tellCode(r, fact, admin.DeleteConsumerGroupOffset(r.Name, r.Name, 0))
		}
		if err := whileMember(r, 2, func() error { return tellDeletion("busy") }); err != nil {
			return err
		}
		if err := tellDeletion("deleted"); err != nil {
			return err
		}
		return tellOffsets(admin, r, "left")
	})
}
